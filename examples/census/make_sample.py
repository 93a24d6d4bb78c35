"""Writes adult.sample.csv: people who never were, in the form of UCI's adult.data."""

import json
import random
from pathlib import Path

HERE = Path(__file__).parent


def person(schema, chance):
    schooling = min(16, max(1, round(chance.gauss(10, 2.5))))
    married = chance.random() < 0.5
    given = {
        "age": chance.randint(18, 75),
        "fnlwgt": chance.randint(20_000, 400_000),
        "education": schema["education"][schooling - 1],
        "education-num": schooling,
        "marital-status": schema["marital-status"][0 if married else chance.randint(1, 4)],
        "capital-gain": chance.choice([0, 0, 0, 0, 0, 0, 0, 0, 3103, 7688]),
        "capital-loss": chance.choice([0, 0, 0, 0, 0, 0, 0, 0, 0, 1902]),
        "hours-per-week": min(80, max(5, round(chance.gauss(40, 10)))),
        "native-country": "United-States"
        if chance.random() < 0.9
        else chance.choice(schema["native-country"]),
    }
    worth = 0.4 * (schooling - 10) + 1.6 * married
    worth += 0.03 * (given["age"] - 40) + 0.04 * (given["hours-per-week"] - 40)
    worth += 2.5 * (given["capital-gain"] > 5000) - 1.8 + chance.gauss(0, 0.8)
    given["income"] = schema["income"][worth > 0]
    return {name: given.get(name, chance.choice(values) if values else 0) for name, values in schema.items()}


def main():
    schema = json.loads((HERE / "schema.json").read_text())
    chance = random.Random(1994)
    rows = [person(schema, chance) for _ in range(800)]
    for row in chance.sample(rows, 30):
        row["workclass"] = row["occupation"] = "?"
    lines = [", ".join(str(value) for value in row.values()) + "\n" for row in rows]
    (HERE / "adult.sample.csv").write_text("".join(lines))


if __name__ == "__main__":
    main()
