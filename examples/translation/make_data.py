"""Writes a small made language pair: English sentences, and the same in Lumo, a language that nobody speaks.

Lumo puts the adjective behind its noun and the verb at the end, and articles and adjectives take the ending
of their noun: "the small dog sees a red house" is "lo tamo pinko ba kessa rubra vidu". The same seed makes
the same files.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

NOUNS = {
    "dog": "tamo", "cat": "mirra", "house": "kessa", "river": "fluvo", "king": "rono", "queen": "sella",
    "apple": "pomma", "stone": "dorko", "bird": "vippa", "tree": "arbo", "ship": "navva", "horse": "gallo",
}  # fmt: skip
ADJECTIVES = {
    "small": "pink", "red": "rubr", "old": "vess", "loud": "klam", "happy": "joll",
    "dark": "nokt", "young": "jun",
}  # fmt: skip
VERBS = {
    "sees": "vidu",
    "loves": "amu",
    "finds": "trovu",
    "follows": "sekvu",
    "carries": "portu",
    "hears": "audu",
}
ARTICLES = {"the": "l", "a": "b"}
HELD_OUT = 200


def phrase(chance: random.Random) -> tuple[str, str]:
    """An article, perhaps an adjective, and a noun, in both languages."""
    article, noun = chance.choice(list(ARTICLES)), chance.choice(list(NOUNS))
    adjective = chance.choice([None, *ADJECTIVES])
    ending = NOUNS[noun][-1]
    lumo = [ARTICLES[article] + ending, NOUNS[noun]]
    if adjective is None:
        return f"{article} {noun}", " ".join(lumo)
    return f"{article} {adjective} {noun}", " ".join([*lumo, ADJECTIVES[adjective] + ending])


def sentence(chance: random.Random) -> tuple[str, str]:
    (subject, first), (thing, second) = phrase(chance), phrase(chance)
    verb = chance.choice(list(VERBS))
    return f"{subject} {verb} {thing}", f"{first} {second} {VERBS[verb]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("data"))
    parser.add_argument("--sentences", type=int, default=10000, help="to train with")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance, made = random.Random(args.seed), {}
    while len(made) < args.sentences + HELD_OUT:
        english, lumo = sentence(chance)
        made[english] = lumo  # each sentence once: none of those held out is trained with
    lines = [f"{english}\t{lumo}\n" for english, lumo in made.items()]
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "heldout.tsv").write_text("".join(lines[:HELD_OUT]))
    (args.to / "train.tsv").write_text("".join(lines[HELD_OUT:]))
    print(f"{args.sentences} sentences in {args.to}/train.tsv, {HELD_OUT} in {args.to}/heldout.tsv")


if __name__ == "__main__":
    main()
