"""Lines of names and values, with a step, times and a bar around them, and no other word. Pure.

    loss: 0.88 - acc: 0.1                                                    plain
    [Epoch 3/10] Train Loss: 0.5 | Val Acc: 71%                              plain
    Epoch 3 completed in 12.5s. Loss: 0.5                                    plain
    [1,  2000] loss: 2.187                                                   PyTorch's tutorial
    782/782 [=====] - 3s 4ms/step - loss: 0.88 - accuracy: 0.1               Keras
    iter 100: loss 2.4, time 33ms, mfu 1.2%                                  nanoGPT
    step 0: train loss 4.28, val loss 4.28                                   nanoGPT
    Train Epoch: 1 [640/60000 (1%)]	Loss: 2.13                               PyTorch's examples
    Test set: Average loss: 0.05, Accuracy: 9832/10000 (98%)                 PyTorch's examples
    | epoch   1 |   200/ 2983 batches | lr 20.00 | loss  7.63 | ppl 2063.51  PyTorch's examples
     * Acc@1 71.2 Acc@5 90.3                                                 PyTorch's examples
    ====> Epoch: 1 Average loss: 164.2                                       PyTorch's examples
    Episode 10 | reward 20.5                                                 plain
    Epoch: [0]  [ 100/1000]  eta: 0:01:40  loss: 0.69 (0.70)  max mem: 1000  torchvision's references
    Epoch(train) [1][100/1000]  lr: 1e-2  eta: 0:10:00  loss: 0.69           MMEngine
    [1/25][100/782]	Loss_D: 0.54	Loss_G: 1.23	D(x): 0.8                  PyTorch's examples
    [Epoch 1/200] [Batch 100/938] [D loss: 0.54] [G loss: 1.23]              plain
    Fold 1 AUC: 0.81 ± 0.02                                                  plain
    global_step=1024, episodic_return=[23.5]                                 CleanRL

A program prints the same line over and over with other numbers: `PlainLines` takes each shape apart once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hostler.records.series.metric_names import (
    END,
    FLOAT,
    LINKS,
    NOISE,
    NUMBER,
    PHASES,
    QUALIFIERS,
    SHOWN,
    Reading,
    clean,
    clean_name,
    has_metric,
    is_metric,
    is_rate,
    whole_number,
)

SHAPES = 256  # of lines with metrics that are remembered

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DAY = r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/.]\d\d[-/.]\d{4}|\d\d/\d\d)[T ]"
_LOGGED = re.compile(
    r"(?:\[(?:rank|default)\d+\]:\s*)?(?:\[titan\]\s+)?"  # what torchrun, and torchtitan, put before all
    "(?:"
    rf"\[{_DAY}{_CLOCK}\]\[[\w.]+\]\[(?:INFO|DEBUG)\] - "  # Hydra
    rf"|(?:{_DAY})?{_CLOCK} \| (?:INFO|DEBUG|SUCCESS)\s+\| [\w.<>]+:[\w.<>]+:\d+ - "  # loguru
    rf"|I\d{{4}} {_CLOCK}\s+\d+ [\w./-]+:\d+\] "  # absl
    rf"|\[\d\d/\d\d {_CLOCK}(?: [\w.]+)?\]:?\s+"  # detectron2
    # 2024-01-02 10:11:12,123 - train - INFO - …   INFO:root:…   10:11:12 INFO [train.py:33:main] …
    rf"|(?:\[?(?:{_DAY})?{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?\]?[\s:|-]*)?"
    r"(?:(?!INFO|DEBUG)[\w.]+ - )?"
    r"(?:\[?(?:INFO|DEBUG|info)\]?(?:[:\s]+[\w.]+:(?!\s*[-+.\d]))?[\s:|-]*(?:[\w.]+ - )?"
    r"(?:(?:\[[\w./-]+:\d+(?::[\w.<>]+)?\]|[\w./-]+\.py:\d+)[\s:|-]*)?)?"
    r")(?:\[rank\d+\]:\s*)?(?:[-=]+>{1,3}\s+|>+\s+(?=(?i:epoch|step|iter)))?"
)
_WORD = r"(?:m?AP@[\d.]+:[\d.]+|R\^2|[A-Za-z][\w.@/+-]*)(?![\w.@/+-])"
_KIND = (
    r"\((?:macro|micro|weighted|train(?:ing)?|val(?:id(?:ation)?)?|test|eval|dev|%|s|ms)\)"  # F1 (macro): 0.8
)
_SPREAD = rf"(?:±|\+/-|\+-)\s*(?:{NUMBER})%?"
_ON = r"\s(?:on|for)\s(?:the\s)?(?P<on>train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|dev|eval)"
_ON += r"(?:[ -](?:set|data|dataset|split|images|samples))?"
_VALUE = (
    rf"(?P<shown>{SHOWN})?(?P<boxed>\[\s*)?(?P<value>{NUMBER})(?(boxed)\s*\])(?(shown)(?:,\s*\w+=[^()]*)?\))"
)
_AMOUNT = r"[\d.]+(?:[eE][-+]?\d+)?"
_TIME = rf"{_AMOUNT}\s?(?:ms|us|µs|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"
_STEP = r"(?i:global[ _]?step|step|iteration|iter|it|epoch|episode|ep|batch|round)"
_PARTS = re.compile(
    r"[\s,;|•—–]+|-+(?=\s|$)|={2,}(?=\s|$)|[-=]+>{1,3}(?=\s)|\*+(?=\s|$)|\.{2,3}(?=\s)"
    r"|\[\d+,\s+\d+\]|\[[=>.\-#\s]*\]|[━╸╺█▏▎▍▌▋▊▉]+"
    r"|\[\d+:\d\d(?::\d\d)?(?:<[\d:?]+)?(?:,\s*[\d.?]+\s?(?:it/s|s/it))?\]"
    r"|[\[(](?=[A-Za-z][\w.@/+ -]*[:=]\s*[-+.\d])|[\])](?=[\s,;:|]|$)"
    rf"|D\((?:x|G\(z\))\):\s*(?:{NUMBER})(?:\s*/\s*(?:{NUMBER}))?"
    r"|(?i:eta|elapsed|remaining|(?:(?:epoch|total|train|val|step)\s+)?(?:time|duration))\s*[:=]?\s*"
    r"(?:\d+ days?,? )?\d+:\d\d(?::\d\d(?:\.\d+)?)?(?![\w:.])"
    rf"|[\[(]?\s*(?:(?i:end of|after)\s+)?(?P<step>{_STEP})s?(?:\((?P<part>train|val|test)\))?"
    rf"\s*[:=#]?\s*[\[(]?\s*(?P<n>\d+)(?:\s*(?:/|of)\s*(?P<of>\d+))?\s*[\])]?:?{END}"
    r"|[\[(]?\s*(?i:fold)\s*[:=#]?\s*(?P<fold>\d+)(?:\s*(?:/|of)\s*\d+)?\s*[\])]?:?(?![\w.])"
    rf"|(?i:(?P<over>end of training|(?:completed?|done|finished)(?:\s+in\s+{_TIME})?|took\s+{_TIME}))\b"
    r"(?!\s*[:=]\s*[-+.\d])[.:!]*"
    rf"|(?P<name>{_WORD}(?: {_WORD}){{0,3}}?)(?:{_ON}|\s?(?P<kind>{_KIND}))?(?P<sign>\s*[:=]\s*|\s+)"
    rf"(?:\d+/\d+\s*\((?P<percent>{NUMBER})%\)|{_VALUE}"
    rf"(?P<unit>\s?%|\s?(?:ms|us|µs|s|m|h|dB|[KMG](?:i?B)?(?:\([\d.]+%\))?|[a-z]+/s(?:ec)?)(?<=[\w)])(?!\w))?"
    rf"(?:\s*{_SPREAD}|\s*\(\s*(?:(?:avg|mean|std|best|min|max):?\s*|±\s*|\+/?-\s*)?(?:{NUMBER})%?\s*\))?{END})"
    rf"|[\[(]?(?P<phase>[A-Za-z]+)[\])]?(?: set)?\s*(?:[:>]|(?<=[\])])|(?=\s*\||{_STEP}\s*[:#]?\s*[\[(]?\d))"
    r"|[\[(]?\s*(?P<at>\d+)\s*/\s*(?P<total>\d+)(?:\s+(?:batches|steps|iters|iterations|samples))?"
    rf"\s*(?:\(\s*{_AMOUNT}%\s*\))?\s*[\])]?:?(?![\w/.])"
    rf"|\(?(?:{_AMOUNT}%|{_TIME}(?:/(?:step|epoch|it|iter|batch|sample))?\b|{_AMOUNT}\s?[a-z]+/s(?:ec)?\b)\)?"
    r"|\d+:\d\d(?::\d\d)?(?![\w:.])"
)
# A number of a line that another may stand in for: not in a name, its sign aside.
_TOKEN = re.compile(r"(?<![\w.@])(?<![\w.@/][-+])(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\d.@])")
_DRAWN = re.compile(r"\[[=>.\-#]|[━╸╺█]|/step")
_LIST = re.compile(  # loss 0.5, train acc 0.81, test acc 0.8
    r"[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){0,3} [\d.]+%?(?:, [A-Za-z][\w-]*(?: [A-Za-z][\w-]*){0,3} [\d.]+%?)+"
)
_NUMBERED = re.compile(r"-\d+$")  # top-5
_DECIBELS = frozenset(("psnr", "snr", "sdr", "si-sdr", "si-snr", "sisdr"))
_JOINED = frozenset((",", ":", ".", "-"))  # between two of them: a date, a clock, thousands

Span = tuple[int, int]


def plain(text: str) -> Reading | None:
    """The reading of a line, or of a part of one, that no others need to be like."""
    line = _Line(text, 0)
    return line.reading() if line.take_all() else None


class PlainLines:
    """Readings of plain lines. The shape of a line that had one is remembered: another line of that shape
    differs in its numbers alone, and each number is of the same kind, whole or not."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[object, ...], _Shape] = {}

    def known(self, text: str) -> Reading | None:
        """The reading of a line whose shape is known."""
        if not self._shapes:
            return None
        key, tokens = _key(text[begin(text) :])
        shape = self._shapes.get(key)
        return shape.reading(tokens) if shape else None

    def read(self, text: str) -> Reading | None:
        """The reading of any line."""
        start = begin(text)
        line = _Line(text, start)
        reading = line.reading() if line.take_all() else None
        if reading:
            self._remember(text, start, line)
        return reading

    def _remember(self, text: str, start: int, line: _Line) -> None:
        rest = text[start:]
        key, tokens = _key(rest)
        shape = line.shape([(start + m.start(), start + m.end()) for m in _TOKEN.finditer(rest)])
        if shape is None or not _JOINED.isdisjoint(key[1 : len(tokens)]):
            return
        if len(self._shapes) >= SHAPES:
            self._shapes.clear()
        self._shapes[key] = shape


def _key(text: str) -> tuple[tuple[object, ...], list[str]]:
    """The texts between the tokens and the kinds of these, and the tokens."""
    pieces = _TOKEN.split(text)
    tokens = pieces[1::2]
    return (*pieces[::2], *map(str.isdecimal, tokens)), tokens


def begin(text: str) -> int:
    """Where a line begins, after what a logger puts before it."""
    logged = _LOGGED.match(text)
    return logged.end() if logged else 0


class _Shape(NamedTuple):
    """Numbers of a line by their places among its tokens; a value has its sign with it."""

    values: tuple[tuple[str, int, bool], ...]
    epoch: int | None
    step: int | None
    place: tuple[int, int] | None
    drawn: bool
    is_batch: bool

    def reading(self, tokens: list[str]) -> Reading:
        values = {
            name: -float(tokens[at]) if negative else float(tokens[at]) for name, at, negative in self.values
        }
        epoch = None if self.epoch is None else int(tokens[self.epoch])
        step = None if self.step is None else int(tokens[self.step])
        place = self.place and (int(tokens[self.place[0]]), int(tokens[self.place[1]]))
        return _reading(values, epoch, step, place, drawn=self.drawn, is_batch=self.is_batch)


def _reading(
    values: dict[str, float],
    epoch: int | None,
    step: int | None,
    place: tuple[int, int] | None,
    *,
    drawn: bool,
    is_batch: bool,
) -> Reading:
    """`drawn`: a bar is in the line, which is drawn over and over until its end."""
    if step is None:
        step = epoch
    if epoch is not None and place:
        step = epoch * place[1] + place[0]
    if is_batch and epoch is None:
        return Reading(values, step, restarts=True)
    if step is None and place and not drawn:
        return Reading(values, place[0], restarts=True)
    whole = step is not None or not place or place[0] >= place[1]
    of_epoch = epoch if step != epoch and not place else None
    return Reading(values, step, whole=whole, epoch=of_epoch)


class _Line:
    """The parts of a line, one after the other. Numbers are kept as their spans."""

    def __init__(self, text: str, begin: int) -> None:
        self._text, self._begin = text, begin
        self._is_list = _LIST.fullmatch(text, begin) is not None
        self._barred = "|" in text or text.startswith("* ", begin)
        self._found: list[tuple[str, Span]] = []
        self._names: list[Span] = []
        self._epoch: Span | None = None
        self._step: Span | None = None
        self._place: tuple[Span, Span] | None = None  # n of total
        self._phase = self._fold = ""
        self._first = ""  # `train` of a line `train Loss: 0.5 Acc: 0.8`: what follows at once is of it, too
        self._drawn = False
        self._is_batch = False  # whether the step is a batch's, counted anew in each epoch
        self._is_sure = False  # whether a name is a metric's here, and not everywhere

    def take_all(self) -> bool:
        """Whether every part of it is understood."""
        at = self._begin
        while at < len(self._text):
            match = _PARTS.match(self._text, at)
            if not match or match.end() == at or not self.take(match):
                return False
            at = match.end()
        return True

    def take(self, match: re.Match[str]) -> bool:
        """False if this part is not of such a line."""
        if match.lastgroup is None:  # a gap, a bar, a time
            self._drawn |= _DRAWN.search(match[0]) is not None
            self._first = self._first if match[0].isspace() else ""
            return True
        if name := match["name"]:
            self._names.append(match.span("name"))
            words = name.replace("R^2", "r2").lower().split()
            return self._take_pair(match, [word.rstrip(".") for word in words])
        if match["step"]:
            self._take_step(match)
        elif match["total"]:
            if self._place and self._epoch is None:  # [3/25][100/782]
                self._epoch = self._place[0]
            self._place = (match.span("at"), match.span("total"))
        elif match["fold"]:
            self._fold = match["fold"]
        elif phase := match["phase"]:
            self._phase = phase.lower()
            return self._phase in PHASES
        elif over := match["over"]:
            return self._is_stepped or over[:3].lower() == "end"
        return True

    def _take_step(self, match: re.Match[str]) -> None:
        self._phase = match["part"] or self._phase
        if match["step"].lower() in ("epoch", "ep"):
            self._epoch = match.span("n")
            return
        self._step, self._is_batch = match.span("n"), match["step"].lower() == "batch"
        if self._epoch is not None and match["of"]:  # Epoch [3/10], Step [100/600]
            self._place = (match.span("n"), match.span("of"))

    def _take_pair(self, match: re.Match[str], words: list[str]) -> bool:
        if len(words) == 2 and words[0] in PHASES and words[1] == "epoch" and match["value"]:
            self._phase, self._epoch = words[0], match.span("value")  # Train Epoch: 1
            return True
        if words[0].startswith("self."):  # a line of code
            return False
        is_time = words[-1] == "time" and bool(match["sign"].strip())  # iter time (s): 0.1
        if is_time or (words[0] == "max" and words[-1] in NOISE):  # max mem: 1024
            return True
        if len(words) > 1 and not all(map(is_word, words)):
            return False
        if not match["sign"].strip() and not self._needs_no_sign(match, words):
            return False
        unit = (match["unit"] or "").strip()
        if unit == "dB" and _DECIBELS.isdisjoint(words):
            return False
        if unit in ("", "%", "dB") and words[0] not in NOISE:
            self._add(match, words)
        return True

    def _add(self, match: re.Match[str], words: list[str]) -> None:
        """Note a value. Its name begins with the part of the data that it is of."""
        kind = (match["kind"] or "").strip("()").replace("%", "")
        if not self._found and len(words) > 1 and words[0] in PHASES and match.start() == self._begin:
            self._first = words[0]
        elif self._first and not PHASES.isdisjoint(re.split(r"[\W_]+", "_".join(words))):
            self._first = ""
        first = self._first if is_metric(" ".join(words)) else ""
        phase = match["on"] or (kind if kind in PHASES else self._phase or first)
        of_phase = phase and PHASES.isdisjoint(re.split(r"[\W_]+", "_".join(words)))
        more = [kind] if kind and kind not in PHASES else []
        fold = ["fold", self._fold] if self._fold else []
        name = "_".join([*fold, *([phase] if of_phase else []), *words, *more])
        self._found.append((name, match.span("percent" if match["percent"] else "value")))
        is_all = match.start() == self._begin and match.end() == len(self._text)
        is_score = is_all and bool(match["sign"].strip()) and "score" in words and all(map(is_word, words))
        is_measured = FLOAT.search(match[0][match.start("value") - match.start() :])
        self._is_sure |= bool(is_measured) and ("mAP" in match["name"] or is_score)

    def _needs_no_sign(self, match: re.Match[str], words: list[str]) -> bool:
        """Whether a name may stand before its value without a sign between them: beside a step, between bars,
        or all by itself if it can only be a variable's, like test_score. Any name may after a metric, as in
        `Episode 10, reward 23.0, epsilon 0.3`."""
        name = " ".join(words)
        if self._is_list and not self._is_stepped:
            return is_metric(name) and bool(FLOAT.search(match["value"]))
        if self._phase in PHASES and is_metric(name) and FLOAT.search(match["value"]):
            return True  # Validation: loss 0.43, acc 0.81
        if self._is_stepped or self._barred:
            known = words[0] in (*NOISE, "lr", "mfu") or is_rate(name) or is_metric(name, weak=True)
            return known or (self._is_stepped and self._holds_metric() and words[0] not in LINKS)
        is_all = match.start() == self._begin and match.end() == len(self._text)
        is_name = "_" in name or all(map(is_word, words))
        return (
            is_all and is_name and is_metric(name) and bool(FLOAT.search(f"{match['value']}{match['unit']}"))
        )

    def _holds_metric(self) -> bool:
        return any(is_metric(name) for name, _ in self._found)

    @property
    def _is_stepped(self) -> bool:
        return self._step is not None or self._epoch is not None

    def reading(self) -> Reading | None:
        found = [(name, self._at(span)) for name, span in self._found]
        if not (self._is_sure or has_metric(found, self._is_stepped or bool(self._fold))):
            return None
        epoch = whole_number(self._at(self._epoch)) if self._epoch else None
        step = int(self._at(self._step)) if self._step else None
        place = self._place and (int(self._at(self._place[0])), int(self._at(self._place[1])))
        return _reading(clean(found), epoch, step, place, drawn=self._drawn, is_batch=self._is_batch)

    def shape(self, tokens: list[Span]) -> _Shape | None:
        """The shape of this line, if its numbers are tokens and its names hold none."""
        places = {span: at for at, span in enumerate(tokens)}
        counts = [span for span in (self._epoch, self._step, *(self._place or ())) if span]
        values = {clean_name(name): span for name, span in self._found}
        numbers = [*counts, *(self._unsigned(span) for span in values.values())]
        in_names = any(start <= at < end for start, end in self._names for at, _ in tokens)
        if (
            in_names
            or self._fold
            or not places.keys() >= {*numbers}
            or not all(self._at(n).isdecimal() for n in counts)
        ):
            return None
        return _Shape(
            tuple(
                (name, places[self._unsigned(span)], self._text[span[0]] == "-")
                for name, span in values.items()
                if name not in ("", "v_num")
            ),
            places[self._epoch] if self._epoch else None,
            places[self._step] if self._step else None,
            self._place and (places[self._place[0]], places[self._place[1]]),
            self._drawn,
            self._is_batch,
        )

    def _unsigned(self, span: Span) -> Span:
        return (span[0] + (self._text[span[0]] in "+-"), span[1])

    def _at(self, span: Span) -> str:
        return self._text[span[0] : span[1]]


def is_word(word: str) -> bool:
    """Whether a word can be one of a metric's name."""
    word = _NUMBERED.sub("", word)
    return (
        word in PHASES or word in QUALIFIERS or word in NOISE or word == "per" or is_metric(word, weak=True)
    )
