"""Metrics in lines that common training tools print. Pure: text in, readings out.

A line counts only if every word of it is understood and a name in it is a metric's (`loss`, `val_acc`): a
sentence, a setting or a table of something else is never a metric. Each function knows the lines of one tool
and returns None for all others; `Recogniser` asks them in turn and keeps what spans lines: the epoch that
Keras prints above its bar, Lightning's table, and its bar where it is broken into lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache

from hostler.frozen import dataclass

_NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|inf|Infinity)"
)
_END = r"(?![\w:/]|[.,-]\d|\.$)"  # no date, version, address or clock begins so
_FLOAT = re.compile(r"[.%eEnN]")  # how a measured value is written, and a setting like 16 is not
_WIDEST = 1000  # characters of a bar that is broken into lines
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08+")
_ODD = re.compile(r"[^\w./-]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of names. A strong one makes a metric by itself, a weak one beside the name of a part of the data.
_STRONG = _words(
    """loss acc accuracy auc auroc aucpr auprc f1 precision recall iou miou dice mae mse rmse rmsle mape r2
    logloss mlogloss merror nll ppl perplexity bleu rouge wer cer psnr ssim fid elbo bpb bpc reward ndcg mrr
    mcc kappa bce xent map50 top1 top5"""
)
_WEAK = _words("error err score return entropy map")
_PHASES = _words("train training val valid validation eval evaluation test testing dev")
_STEPS = _words("step global_step globalstep iteration iter it epoch ep batch round")
_QUALIFIERS = _words(
    """avg average mean best final running total epoch batch step macro micro weighted top grad gradient norm
    lr learning rate set cls box reg"""
)
_SETTINGS = _words(
    """weight weights scale coef coeff coefficient threshold target lambda alpha beta gamma eps epsilon
    smoothing patience tol tolerance margin factor decay fn type reduction limit goal every freq window cutoff
    delta clip warmup schedule size num max min"""
)
_NOISE = _words(
    """time eta elapsed duration remaining seed pid rank port device gpu version v_num data mem memory vram dt
    worker node job id year line exit code"""
)


@dataclass(frozen=True)
class Reading:
    """Metrics of a line. `step`: the line's own; None: counted. `restarts`: the step is a bar's, and begins
    anew with each bar. `rounds`: the step is counted from 0 also where a training goes on. `whole`: False of
    a state on the way, which a later line replaces."""

    values: Mapping[str, float] = field(default_factory=dict)
    step: int | None = None
    restarts: bool = False
    rounds: bool = False
    whole: bool = True
    epoch: float | None = None  # where it has no step: an epoch, perhaps a part of one


# {'loss': '0.69', 'grad_norm': 1.2, 'epoch': 1.0}
_ENTRY = re.compile(
    r"""\s*(?:'([^']+)'|"([^"]+)")\s*:\s*(?:(?P<q>['"]?)(?P<n>{n})(?P=q)|None)\s*(?:,|$)""".replace(
        "{n}", _NUMBER
    )
)


def transformers(text: str) -> Reading | None:
    """A dict of Transformers' Trainer; all of its values are numbers, quoted or not."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    found, at, inner = dict[str, str](), 0, text[1:-1]
    while at < len(inner):
        if not (match := _ENTRY.match(inner, at)):
            return None
        if match["n"]:
            found[match[1] or match[2]] = match["n"]
        at = match.end()
    step = next((found.pop(key) for key in ("step", "global_step") if key in found), None)
    if not _has_metric(found.items(), step is not None or "epoch" in found):
        return None
    values = _clean(found.items())
    return Reading(values, _whole(step), epoch=values.get("epoch"))


# [14]	val-logloss:0.048	train-logloss:0.03            XGBoost
# [10]	valid_0's l2: 0.24	valid_0's auc: 0.9 + 0.01     LightGBM; the second as its cv prints it
_ROUND = re.compile(r"\[(\d+)\]\s+(.*)")
_BOOSTED = re.compile(
    rf"(?:(?P<of>[\w.-]+)'s )?(?P<name>(?:\w+ )?[\w.@-]+):\s?(?P<n>{_NUMBER})(?: ?\+ ?[\d.e-]+)?{_END}\s*"
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
        if not pair["of"] and not _FLOAT.search(pair["n"]):
            return None
        found.append((f"{pair['of']}/{pair['name']}" if pair["of"] else pair["name"], pair["n"]))
        at = pair.end()
    known = any("/" in name or is_metric(name, weak=True) for name, _ in found)
    of_xgboost = not any("/" in name for name, _ in found)
    return Reading(_clean(found), int(match[1]), rounds=of_xgboost) if known else None


# Epoch 2:  45%|####   | 9/20 [00:01<00:02, 5.1it/s, v_num=0, loss=0.31]      tqdm, and Lightning's bar
_TQDM = re.compile(
    r"%\|[^|]*\|\s*(?P<at>\d+)/(?P<total>\d+)\s*"
    r"\[[\d:]+<[\d:?]+,\s*[\d.?]+\s?(?:it/s|s/it|[A-Za-z]+/s|s/[A-Za-z]+),\s*(?P<rest>[^\]]*)\]"
)
_PAIR_OF_BAR = re.compile(rf"\s*([A-Za-z][\w.@/ -]*?)\s*[=:]\s*({_NUMBER})\s?%?{_END}\s*,?\s*")
_OTHER_OF_BAR = re.compile(r"\s*[A-Za-z][\w.@/ -]*=[^,=]*(?:,|$)\s*")
_EPOCH_OF_BAR = re.compile(r"\bepoch\s*[:#]?\s*(\d+)(?:\s*/\s*\d+)?\s*(?::\s*\d*)?$", re.IGNORECASE)


def tqdm(text: str) -> Reading | None:
    """The postfix of a tqdm bar."""
    at = text.find("%|")
    match = _TQDM.match(text, at) if at > 0 else None
    return _bar(match, text[:at]) if match else None


# Epoch 0/9 ━━━━━━━━ 20/20 0:00:01 • 0:00:00 9.1it/s v_num: 0.000 train_loss: 0.310      Lightning with rich
_RICH = re.compile(
    r"(?P<head>Epoch \d+)(?:/\d+)?\s+[━╸╺\s-]+\s*(?P<at>\d+)/(?P<total>\d+)\s+[\d:]+\s+•\s+[-\d:]+\s+"
    r"[\d.]+it/s\s+(?P<rest>.+)"
)


def rich_bar(text: str) -> Reading | None:
    """Lightning's other bar; None while a narrow terminal has its metrics on further lines."""
    match = _RICH.fullmatch(text)
    return _bar(match, match["head"]) if match else None


def _bar(match: re.Match[str], head: str) -> Reading | None:
    found, at, rest = list[tuple[str, str]](), 0, match["rest"]
    while at < len(rest):
        if pair := _PAIR_OF_BAR.match(rest, at):
            found.append((pair[1], pair[2]))
        elif not (pair := _OTHER_OF_BAR.match(rest, at)):
            return None
        at = pair.end()
    if not _has_metric(found, True):
        return None
    step, epoch = int(match["at"]), _EPOCH_OF_BAR.search(head)
    if epoch:
        return Reading(_clean(found), int(epoch[1]) * int(match["total"]) + step)
    return Reading(_clean(found), step, restarts=True)


# Train: 0 [  50/195 ( 26%)]  Loss: 6.9 (6.93)  Time: 0.5s, 250.1/s  (0.5s, 251/s)  LR: 1.0e-5  Data: 0.01
# Test: [  10/48]  Time: 0.1 (0.2)  Loss: 1.2 (1.3)  Acc@1: 1.0 ( 1.2)
_TIMM = re.compile(
    r"(?P<phase>Train|Test(?: \(EMA\))?): (?:(?P<epoch>\d+) )?\[\s*(?P<at>\d+)/(?P<total>\d+)\b"
)
_TIMM_PAIR = re.compile(rf"(Loss|LR|Acc@\d+):\s*({_NUMBER})(?:\s*\(\s*({_NUMBER})\s*\))?")


def timm(text: str) -> Reading | None:
    """A line of timm's scripts: of training the newest value, of a test the average so far."""
    head = _TIMM.match(text)
    pairs = _TIMM_PAIR.findall(text, head.end()) if head else []
    if not head or not pairs:
        return None
    at, total = int(head["at"]), int(head["total"])
    if head["phase"] == "Train":
        step = int(head["epoch"]) * total + at if head["epoch"] else None
        return Reading(_clean((f"train_{name.lower()}", value) for name, value, _ in pairs), step)
    prefix = "test_ema_" if "EMA" in head["phase"] else "test_"
    values = _clean((prefix + name.lower(), average or value) for name, value, average in pairs)
    return Reading(values, whole=at >= total)


# loss: 0.88 - acc: 0.1                                                    plain
# epoch 3 | val_loss=0.12                                                  plain
# 782/782 [=====] - 3s 4ms/step - loss: 0.88 - accuracy: 0.1               Keras
# iter 100: loss 2.4, time 33ms, mfu 1.2%                                  nanoGPT
# step 0: train loss 4.28, val loss 4.28                                   nanoGPT
# Train Epoch: 1 [640/60000 (1%)]	Loss: 2.13                             PyTorch's examples
# Test set: Average loss: 0.05, Accuracy: 9832/10000 (98%)                 PyTorch's examples
_LOGGED = re.compile(  # 2024-01-02 10:11:12,123 - train - INFO - …   INFO:root:…   [rank0]: …
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[\s:|-]*)?"
    r"(?:[\w.]+ - )?(?:\[?(?:INFO|DEBUG|info)\]?(?:[:\s]+[\w.]+:(?!\s*[-+.\d]))?[\s:|-]*(?:[\w.]+ - )?)?"
    r"(?:\[rank\d+\]:\s*)?"
)
_WORD = r"[A-Za-z][\w.@/+-]*(?![\w.@/+-])"
_PARTS = re.compile(
    r"[\s,;|•—–]+|-+(?=\s|$)|\[[=>.\-#\s]*\]|[━╸╺█▏▎▍▌▋▊▉]+"
    rf"|(?P<step>(?i:global[ _]?step|step|iteration|iter|epoch|batch|round))s?\s*[:=#]?\s*[\[(]?\s*(?P<n>\d+)"
    rf"(?:\s*(?:/|of)\s*(?P<of>\d+))?\s*[\])]?:?{_END}"
    rf"|(?P<name>{_WORD}(?: {_WORD}){{0,3}}?)(?P<sign>\s*[:=]\s*|\s+)"
    rf"(?:\d+/\d+\s*\((?P<percent>{_NUMBER})%\)|(?P<value>{_NUMBER})"
    rf"(?P<unit>%|\s?(?:ms|us|µs|s|m|h|[KMG]i?B|[a-z]+/s(?:ec)?)\b)?(?:\s*\(\s*(?:{_NUMBER})%?\s*\))?{_END})"
    r"|\[?(?P<phase>[A-Za-z]+)\]?(?: set)?\s*(?:[:>]|(?<=\])|(?=\s*\|))"
    r"|[\[(]?\s*(?P<at>\d+)\s*/\s*(?P<total>\d+)\s*(?:\(\s*[\d.]+%\s*\))?\s*[\])]?(?![\w/.])"
    r"|\(?[\d.]+(?:%|\s?(?:ms|us|µs|s|m|h)(?:/(?:step|epoch|it|iter|batch|sample))?\b|\s?[a-z]+/s(?:ec)?\b)\)?"
    r"|\d+:\d\d(?::\d\d)?(?![\w:.])"
)


def plain(text: str) -> Reading | None:
    """Names and values with a step, times and a bar around them, and no other word."""
    line, logged = _Line(), _LOGGED.match(text)
    at = logged.end() if logged else 0
    while at < len(text):
        match = _PARTS.match(text, at)
        if not match or match.end() == at or not line.take(match):
            return None
        at = match.end()
    return line.reading()


class _Line:
    """The parts of a plain line, one after the other."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []
        self._epoch: int | None = None
        self._step: int | None = None
        self._place: tuple[int, int] | None = None  # n of total
        self._phase = ""

    def take(self, match: re.Match[str]) -> bool:
        """False if this part is not of such a line."""
        if match.lastgroup is None:  # a gap, a bar, a time
            return True
        if name := match["name"]:
            return self._take_pair(match, name.lower().split())
        if match["step"]:
            self._take_step(match)
        elif match["total"]:
            self._place = (int(match["at"]), int(match["total"]))
        elif phase := match["phase"]:
            self._phase = phase.lower()
            return self._phase in _PHASES
        return True

    def _take_step(self, match: re.Match[str]) -> None:
        if match["step"].lower() == "epoch":
            self._epoch = int(match["n"])
            return
        self._step = int(match["n"])
        if self._epoch is not None and match["of"]:  # Epoch [3/10], Step [100/600]
            self._place = (self._step, int(match["of"]))

    def _take_pair(self, match: re.Match[str], words: list[str]) -> bool:
        if len(words) == 2 and words[0] in _PHASES and words[1] == "epoch":  # Train Epoch: 1
            self._phase, self._epoch = words[0], _whole(match["value"])
            return True
        if len(words) > 1 and not all(map(_is_word, words)):
            return False
        if not match["sign"].strip() and not (self._stepped and _is_named(words)):
            return False
        if match["unit"] in (None, "%") and words[0] not in _NOISE:
            of_phase = self._phase and _PHASES.isdisjoint(re.split(r"[\W_]+", "_".join(words)))
            name = "_".join([self._phase, *words] if of_phase else words)
            self._found.append((name, match["percent"] or match["value"]))
        return True

    @property
    def _stepped(self) -> bool:
        return self._step is not None or self._epoch is not None

    def reading(self) -> Reading | None:
        if not _has_metric(self._found, self._stepped):
            return None
        step = self._epoch if self._step is None else self._step
        if self._epoch is not None and self._place:
            step = self._epoch * self._place[1] + self._place[0]
        whole = step is not None or not self._place or self._place[0] >= self._place[1]
        return Reading(_clean(self._found), step, whole=whole)


def _is_word(word: str) -> bool:
    return word in _PHASES or word in _QUALIFIERS or is_metric(word, weak=True)


def _is_named(words: list[str]) -> bool:
    """Whether a name may stand before its value without a sign between them."""
    return words[0] in _NOISE or words[0] in ("lr", "mfu") or is_metric(" ".join(words), weak=True)


_TOOLS: tuple[Callable[[str], Reading | None], ...] = (transformers, boosting, tqdm, timm, plain)

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
        self._epoch: int | None = None  # as Keras has printed it above its bar
        self._columns = 0  # of Lightning's table, while it is being printed
        self._rows: dict[str, float] = {}
        self._bar = ""  # of Lightning with rich, while its metrics may go on in the next line
        self.dull = False  # whether no line of the last one's shape holds anything

    @property
    def in_table(self) -> bool:
        """Whether every line is wanted, worth a look or not."""
        return self._columns > 0 or bool(self._bar)

    def read(self, line: bytes, before: bytes = b"") -> Reading | None:
        """The metrics of a line. `before` is the line above it: settings are printed in columns."""
        text, self.dull = _ANSI.sub("", line.decode("utf-8", "replace")), False
        if (self._columns or "DataLoader" in text) and ((reading := self._table(text)) or self._columns):
            return reading
        indented, text = text[:1].isspace(), text.strip()
        bar, self._bar = self._bar, ""
        if _RICH.fullmatch(text) or (bar and indented and text):
            whole = f"{bar} {text}" if bar and indented else text
            self._bar = whole if len(whole) <= _WIDEST else ""
            return rich_bar(whole)
        if match := _EPOCH.fullmatch(text):
            self._epoch = int(match[1])
            return None
        for tool in _TOOLS:
            if reading := tool(text):
                if tool is plain and reading.step is None:
                    if len(reading.values) == 1 and _is_setting(text, indented=indented, before=before):
                        return None
                    if self._epoch is not None and _BAR.match(text):  # Keras
                        return Reading(reading.values, self._epoch, whole=reading.whole)
                return reading
        self.dull = True
        return None

    def close(self) -> Reading | None:
        """What a table held that the output broke off in."""
        rows, self._rows, self._columns = self._rows, {}, 0
        return Reading(rows) if rows else None

    def _table(self, text: str) -> Reading | None:
        """Lightning's table, once its last line is there."""
        if match := _HEADING.fullmatch(text):
            self._columns = match[1].count("DataLoader")
            return None
        cells = re.split(r"[│┃]|\s{2,}", text.strip("│┃ \t\r"))
        cells = [cell.strip() for cell in cells if cell.strip()]
        if cells and set("".join(cells)) <= set("─━┏┓┳┡┩╇└┘┴├┤┼ "):
            return self.close() if self._rows else None
        numbers = [_value(cell) for cell in cells[1:]]
        if not cells or len(numbers) != self._columns or None in numbers:
            return self.close()
        for n, value in enumerate(numbers):
            name = cells[0] if self._columns == 1 else f"{cells[0]}/dataloader_{n}"
            self._rows |= {_name(name): value} if value is not None else {}
        return None


_BAR = re.compile(r"\d+/\d+\s")


def _is_setting(text: str, *, indented: bool, before: bytes) -> bool:
    """Whether a lone `name: value` is one of a column of settings, or a line of code in a traceback."""
    if indented:
        return True
    keyed = _KEYED.fullmatch(before)
    if not keyed:
        return False
    above = keyed[1].decode().lower()
    return not (above in _PHASES or above in _STEPS or above in _NOISE or is_metric(above, weak=True))


@lru_cache(maxsize=1024)
def is_metric(name: str, *, weak: bool = False) -> bool:
    """Whether a name is a metric's, by its words. `weak`: a weak one will do by itself."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if not _SETTINGS.isdisjoint(words):
        return False
    plain_words = {*words, *(word.rstrip("0123456789") for word in words)}
    if not _STRONG.isdisjoint(plain_words):
        return True
    return not _WEAK.isdisjoint(plain_words) and (weak or not _PHASES.isdisjoint(words))


def _has_metric(found: Iterable[tuple[str, str]], stepped: bool) -> bool:
    """Whether one of these is a metric, and written as a measured value is: 16 may be one beside a step."""
    return any(is_metric(name) and (stepped or _FLOAT.search(value)) for name, value in found)


def _clean(found: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Names that columns, plots and conditions can hold, and numbers."""
    values = {_name(name): _value(value) for name, value in found}
    return {name: value for name, value in values.items() if name not in ("", "v_num") and value is not None}


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return _ODD.sub("_", name.strip().replace("@", "")).strip("_")


def _value(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _whole(step: str | None) -> int | None:
    value = _value(step) if step else None
    return int(value) if value is not None and math.isfinite(value) else None
