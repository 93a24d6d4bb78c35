"""Metrics in lines that common training tools print. Pure: text in, readings out.

A line counts only if every word of it is understood and a name in it is a metric's (`loss`, `val_acc`): a
sentence, a setting or a table of something else is never a metric. Each function knows the lines of one tool
and returns None for all others; `Recogniser` asks them in turn, then `plain_lines.py`. It keeps what spans
lines: the epoch that Keras prints above its bar, Lightning's table, and its bar that is broken into lines;
other tables are in `printed_tables.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hostler.records.series.metric_names import (
    END,
    FLOAT,
    NOISE,
    NUMBER,
    PHASES,
    SHOWN,
    STEPS,
    Reading,
    clean,
    clean_name,
    has_metric,
    is_metric,
    number,
    whole_number,
)
from hostler.records.series.plain_lines import PlainLines, begin, is_word, plain
from hostler.records.series.printed_tables import ColumnTable, KeyTable

_WIDEST = 1000  # characters of a bar that is broken into lines
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08+")


# {'loss': '0.69', 'grad_norm': 1.2, 'epoch': 1.0}        Epoch 3: {'loss': np.float64(0.5)}
_ENTRY = re.compile(
    r"""\s*(?:'([^']+)'|"([^"]+)")\s*:\s*(?:(?:(?P<q>['"])|(?P<shown>{shown}))?(?P<n>{n})(?(q)(?P=q))(?(shown)\))|None)"""
    r"\s*(?:,|$)".replace("{n}", NUMBER).replace("{shown}", SHOWN)
)
_DICT = re.compile(
    r"\[?(?:(?i:epoch|step|iteration|iter)\s*[:=#]?\s*(?P<n>\d+)(?:\s*/\s*\d+)?|"
    rf"(?P<of>{'|'.join(sorted(PHASES))}|metrics|results|scores|logs|history)(?: metrics| results| scores)?)"
    r"\]?[\s:=|,-]+(?P<dict>\{.*\})",
    re.IGNORECASE,
)


def transformers(text: str) -> Reading | None:
    """A dict of Transformers' Trainer; all of its values are numbers, quoted or not."""
    head = _DICT.fullmatch(text) if text.endswith("}") else None
    text = head["dict"] if head else text
    if not (text.startswith("{") and text.endswith("}")):
        return None
    pieces = _ENTRY.split(text[1:-1])  # what is between the entries, and five groups of each
    if any(pieces[::6]):
        return None
    found = {a or b: n for a, b, n in zip(pieces[1::6], pieces[2::6], pieces[5::6], strict=True) if n}
    step = next((found.pop(key) for key in ("step", "global_step") if key in found), None)
    step = head["n"] if head and step is None else step
    if not has_metric(found.items(), step is not None or "epoch" in found):
        return None
    of = head["of"].lower() if head and head["of"] else ""
    values = clean(
        (f"{of}_{name}" if of in PHASES and not _has_phase(name) else name, n) for name, n in found.items()
    )
    return Reading(values, whole_number(step), epoch=values.get("epoch"))


def _has_phase(name: str) -> bool:
    return not PHASES.isdisjoint(re.split(r"[\W_]+", name.lower()))


# [14]	val-logloss:0.048	train-logloss:0.03            XGBoost
# [10]	valid_0's l2: 0.24	valid_0's auc: 0.9 + 0.01     LightGBM; the second as its cv prints it
_ROUND = re.compile(r"\[(\d+)\]\s+(.*)")
_BOOSTED = re.compile(
    rf"(?:(?P<of>[\w.-]+)'s )?(?P<name>(?:\w+ )?[\w.@-]+):\s?(?P<n>{NUMBER})(?: ?\+ ?[\d.e-]+)?{END}\s*"
)


def boosting(text: str) -> Reading | None:
    """A round of XGBoost or LightGBM."""
    match = _ROUND.fullmatch(text)
    if not match:
        return None
    found, at, rest = list[tuple[str, str]](), 0, match[2]
    while at < len(rest):
        if not (pair := _BOOSTED.match(rest, at)) or not (pair["of"] or "-" in pair["name"]):
            return None
        if not pair["of"] and not FLOAT.search(pair["n"]):
            return None
        found.append((f"{pair['of']}/{pair['name']}" if pair["of"] else pair["name"], pair["n"]))
        at = pair.end()
    known = any("/" in name or is_metric(name, weak=True) for name, _ in found)
    of_xgboost = not any("/" in name for name, _ in found)
    return Reading(clean(found), int(match[1]), rounds=of_xgboost) if known else None


# 0:	learn: 0.6543	test: 0.6612	best: 0.6612 (0)	total: 57.5ms	remaining: 57.4s      CatBoost
_CAT = re.compile(
    rf"(\d+):((?:\s+(?:learn|test\d*|best):\s(?:{NUMBER})(?: \(\d+\))?)+)"
    r"(?:\s+total: [\d.]+(?:us|ms|s|m|h)(?: [\d.]+(?:ms|s|m))?)?(?:\s+remaining: \S+(?: [\d.]+(?:ms|s|m))?)?"
)
_PAIR_OF_CAT = re.compile(rf"([a-z]+\d*):\s({NUMBER})")


def catboost(text: str) -> Reading | None:
    """A round of CatBoost."""
    match = _CAT.fullmatch(text)
    return Reading(clean(_PAIR_OF_CAT.findall(match[2])), int(match[1])) if match else None


# Epoch 2:  45%|####   | 9/20 [00:01<00:02, 5.1it/s, v_num=0, loss=0.31]      tqdm, and Lightning's bar
_TQDM = re.compile(
    r"%\|[^|]*\|\s*(?P<at>\d+)/(?P<total>\d+)\s*"
    r"\[[\d:]+<[\d:?]+,\s*[\d.?]+\s?(?:it/s|s/it|[A-Za-z]+/s|s/[A-Za-z]+)(?:,\s*(?P<rest>[^\]]*))?\]"
)
_TITLE = re.compile(r"(.*\d(?:\.\d|e-).*?):?\s*\d+")
_PAIR_OF_BAR = re.compile(rf"\s*([A-Za-z][\w.@/ -]*?)\s*[=:]\s*({NUMBER})\s?%?{END}\s*,?\s*")
_OTHER_OF_BAR = re.compile(r"\s*[A-Za-z][\w.@/ -]*=[^,=]*(?:,|$)\s*")
_EPOCH_OF_BAR = re.compile(r"\bepoch\s*[:#]?\s*(\d+)(?:\s*/\s*\d+)?\s*(?::\s*\d*)?$", re.IGNORECASE)


def tqdm(text: str) -> Reading | None:
    """The postfix of a tqdm bar, or its description: `loss 0.31:  45%|…`."""
    at = text.find("%|")
    match = _TQDM.match(text, at) if at > 0 else None
    if not match:
        return None
    reading, head = _bar(match, text[:at]), _TITLE.fullmatch(text[:at])
    title = plain(head[1]) if head else None
    if title is None:
        return reading
    step, total = int(match["at"]), int(match["total"])
    values = {**title.values, **(reading.values if reading else {})}
    if title.step is not None:
        return Reading(values, title.step * total + step)
    return reading._replace(values=values) if reading else Reading(values, step, restarts=True)


# Epoch 0/9 ━━━━━━━━ 20/20 0:00:01 • 0:00:00 9.1it/s v_num: 0.000 train_loss: 0.310      Lightning with rich
_RICH = re.compile(
    r"(?P<head>Epoch \d+)(?:/\d+)?\s[━╸╺\s-]+(?P<at>\d+)/(?P<total>\d+)\s+[\d:]+\s+•\s+[-\d:]+\s+"
    r"[\d.]+it/s\s+(?P<rest>.+)"
)


def rich_bar(text: str) -> Reading | None:
    """Lightning's other bar; None while a narrow terminal has its metrics on further lines."""
    match = _RICH.fullmatch(text)
    return _bar(match, match["head"]) if match else None


def _bar(match: re.Match[str], head: str) -> Reading | None:
    found, at, rest = list[tuple[str, str]](), 0, match["rest"] or ""
    while at < len(rest):
        if pair := _PAIR_OF_BAR.match(rest, at):
            found.append((pair[1], pair[2]))
        elif not (pair := _OTHER_OF_BAR.match(rest, at)):
            return None
        at = pair.end()
    if not has_metric(found, True):
        return None
    step, epoch = int(match["at"]), _EPOCH_OF_BAR.search(head)
    if epoch:
        return Reading(clean(found), int(epoch[1]) * int(match["total"]) + step)
    return Reading(clean(found), step, restarts=True)


# Train: 0 [  50/195 ( 26%)]  Loss: 6.9 (6.93)  Time: 0.5s, 250.1/s  (0.5s, 251/s)  LR: 1.0e-5  Data: 0.01
# Test: [  10/48]  Time: 0.1 (0.2)  Loss: 1.2 (1.3)  Acc@1: 1.0 ( 1.2)
_TIMM = re.compile(
    r"(?P<phase>Train|Test(?: \(EMA\))?): (?:(?P<epoch>\d+) )?\[\s*(?P<at>\d+)/(?P<total>\d+)\b"
)
_TIMM_PAIR = re.compile(rf"(Loss|LR|Acc@\d+):\s*({NUMBER})(?:\s*\(\s*({NUMBER})\s*\))?")


def timm(text: str) -> Reading | None:
    """A line of timm's scripts: of training the newest value, of a test the average so far."""
    head = _TIMM.match(text)
    pairs = _TIMM_PAIR.findall(text, head.end()) if head else []
    if not head or not pairs:
        return None
    at, total = int(head["at"]), int(head["total"])
    if head["phase"] == "Train":
        step = int(head["epoch"]) * total + at if head["epoch"] else None
        return Reading(clean((f"train_{name.lower()}", value) for name, value, _ in pairs), step)
    prefix = "test_ema_" if "EMA" in head["phase"] else "test_"
    values = clean((prefix + name.lower(), average or value) for name, value, average in pairs)
    return Reading(values, whole=at >= total)


# Accuracy of the network on the 10000 test images: 71 %                      PyTorch's tutorial
_ON_IMAGES = re.compile(
    r"(?:(?:Train|Test|Validation) )?Accuracy of the (?:network|model|net) on the (?:\d+ )?"
    rf"(?P<phase>train|training|test|validation) (?:images|samples|examples)\s*[:=]\s*(?P<n>{NUMBER})\s?%?",
    re.IGNORECASE,
)


def on_images(text: str) -> Reading | None:
    """The last line of PyTorch's tutorial, which many scripts have kept."""
    match = _ON_IMAGES.fullmatch(text)
    return Reading(clean([(f"{match['phase'].lower()}_accuracy", match["n"])])) if match else None


# Cost after iteration 100: 0.53        Accuracy at epoch 3: 81.2%              plain
_AFTER = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*(?: [A-Za-z][\w.-]*){0,2}) (?:at|after|for|in) (?:the )?(?:end of )?"
    rf"(?:epoch|step|iteration|iter|round|episode)\s*[:#]?\s*(?P<at>\d+)(?:\s*/\s*\d+)?\s*(?:[:=]|\bis\b)\s*"
    rf"(?P<n>{NUMBER})\s?%?",
    re.IGNORECASE,
)
# LOSS train 0.53 valid 0.61                                                   PyTorch's tutorial
_BOTH = re.compile(rf"LOSS train (?P<train>{NUMBER}) valid (?P<valid>{NUMBER})")


def after_step(text: str) -> Reading | None:
    """A value with its step between the name and it."""
    match = _AFTER.fullmatch(text)
    words = match["name"].lower().split() if match else []
    if not match or not all(is_word(word) for word in words) or not is_metric(" ".join(words), weak=True):
        return None
    return Reading(clean([("_".join(words), match["n"])]), int(match["at"]))


def both_losses(text: str) -> Reading | None:
    """The line at the end of an epoch of PyTorch's tutorial."""
    match = _BOTH.fullmatch(text)
    return Reading(clean([("train_loss", match["train"]), ("valid_loss", match["valid"])])) if match else None


_TOOLS: tuple[Callable[[str], Reading | None], ...] = (
    transformers,
    boosting,
    catboost,
    tqdm,
    timm,
    on_images,
    after_step,
    both_losses,
)

_KEYED = re.compile(rb"\s*-?\s*([A-Za-z_][\w.-]*):(?:\s.*)?")

# │         test_acc          │    0.9714000225067139     │        after "Test metric … DataLoader 0"
_HEADING = re.compile(
    r"[┃│\s]*(?:\w+\.)?(?:Test|Validate|validate|testing|validating) metric\b[┃│\s]*"
    r"((?:DataLoader \d+[┃│\s]*)+)"
)
_EPOCH = re.compile(r"Epoch (\d+)/\d+")


class Recogniser:
    """Readings of lines in the order they were printed."""

    def __init__(self) -> None:
        self._plain = PlainLines()
        self._epoch: int | None = None  # as Keras has printed it above its bar
        self._columns = 0  # of Lightning's table, while it is being printed
        self._rows: dict[str, float] = {}
        self._tables = (KeyTable(), ColumnTable())
        self._bar = ""  # of Lightning with rich, while its metrics may go on in the next line
        self.dull = False  # whether no line of the last one's shape holds anything

    @property
    def in_table(self) -> bool:
        """Whether every line is wanted, worth a look or not."""
        return self._columns > 0 or bool(self._bar) or any(table.is_open for table in self._tables)

    def read(self, line: bytes, before: bytes = b"") -> Reading | None:
        """The metrics of a line. `before` is the line above it: settings are printed in columns."""
        text, self.dull = line.decode("utf-8", "replace"), False
        if "\x1b" in text or "\x08" in text:
            text = _ANSI.sub("", text)
        if (self._columns or "DataLoader" in text) and ((reading := self._table(text)) or self._columns):
            return reading
        for table in self._tables:
            is_of_table, reading = table.read(text)
            if is_of_table or reading:
                return reading
        indented, text = text[:1].isspace(), text.strip()
        if not self._bar and (reading := self._plain.known(text)):
            return self._placed(reading, text, indented=indented, before=before)
        bar, self._bar = self._bar, ""
        if _RICH.fullmatch(text) or (bar and indented and text):
            whole = f"{bar} {text}" if bar and indented else text
            self._bar = whole if len(whole) <= _WIDEST else ""
            return rich_bar(whole)
        if match := _EPOCH.fullmatch(text):
            self._epoch = int(match[1])
            return None
        message = text[begin(text) :].lstrip()  # behind what a logger puts before it
        for tool in _TOOLS:
            if reading := tool(text) or (tool(message) if message != text else None):
                return reading
        if reading := self._plain.read(text):
            return self._placed(reading, text, indented=indented, before=before)
        self.dull = True
        return None

    def _placed(self, reading: Reading, text: str, *, indented: bool, before: bytes) -> Reading | None:
        """A plain line's metrics at the epoch above it, if they are metrics where it stands."""
        bar = _BAR.match(text) if self._epoch is not None else None
        if bar and reading.restarts:  # an older Keras, which prints one line for each epoch
            reading = Reading(reading.values, whole=int(bar[1]) >= int(bar[2]))
        if reading.step is not None:
            return reading
        if len(reading.values) == 1 and _is_setting(indented=indented, before=before):
            return None
        if bar:  # Keras
            return Reading(reading.values, self._epoch, whole=reading.whole)
        return reading

    def close(self) -> Reading | None:
        """What a table held that the output broke off in."""
        rows, self._rows, self._columns = self._rows, {}, 0
        return Reading(rows) if rows else self._tables[0].close()

    def _table(self, text: str) -> Reading | None:
        """Lightning's table, once its last line is there."""
        if match := _HEADING.fullmatch(text):
            self._columns = match[1].count("DataLoader")
            return None
        cells = re.split(r"[│┃]|\s{2,}", text.strip("│┃ \t\r"))
        cells = [cell.strip() for cell in cells if cell.strip()]
        if cells and set("".join(cells)) <= set("─━┏┓┳┡┩╇└┘┴├┤┼ "):
            return self.close() if self._rows else None
        numbers = [number(cell) for cell in cells[1:]]
        if not cells or len(numbers) != self._columns or None in numbers:
            return self.close()
        for n, value in enumerate(numbers):
            name = cells[0] if self._columns == 1 else f"{cells[0]}/dataloader_{n}"
            self._rows |= {clean_name(name): value} if value is not None else {}
        return None


_BAR = re.compile(r"(\d+)/(\d+)\s")


def _is_setting(*, indented: bool, before: bytes) -> bool:
    """Whether a lone `name: value` is one of a column of settings, or a line of code in a traceback."""
    if indented:
        return True
    keyed = _KEYED.fullmatch(before)
    if not keyed:
        return False
    above = keyed[1].decode().lower()
    return not (above in PHASES or above in STEPS or above in NOISE or is_metric(above, weak=True))
