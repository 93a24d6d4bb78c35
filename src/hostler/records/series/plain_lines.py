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
    Reading,
    clean,
    clean_name,
    has_metric,
    is_metric,
    is_rate,
    whole_number,
)

SHAPES = 256  # of lines with metrics that are remembered

_LOGGED = re.compile(  # 2024-01-02 10:11:12,123 - train - INFO - …   INFO:root:…   [rank0]: …
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[\s:|-]*)?"
    r"(?:[\w.]+ - )?(?:\[?(?:INFO|DEBUG|info)\]?(?:[:\s]+[\w.]+:(?!\s*[-+.\d]))?[\s:|-]*(?:[\w.]+ - )?)?"
    r"(?:\[rank\d+\]:\s*)?"
)
_WORD = r"(?:m?AP@[\d.]+:[\d.]+|[A-Za-z][\w.@/+-]*)(?![\w.@/+-])"
_AMOUNT = r"[\d.]+(?:[eE][-+]?\d+)?"
_TIME = rf"{_AMOUNT}\s?(?:ms|us|µs|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"
_STEP = r"(?i:global[ _]?step|step|iteration|iter|it|epoch|episode|ep|batch|round)"
_PARTS = re.compile(
    r"[\s,;|•—–]+|-+(?=\s|$)|={2,}>?(?=\s|$)|\*+(?=\s)|\.{2,3}(?=\s)"
    r"|\[\d+,\s+\d+\]|\[[=>.\-#\s]*\]|[━╸╺█▏▎▍▌▋▊▉]+"
    rf"|[\[(]?\s*(?:(?i:end of)\s+)?(?P<step>{_STEP})s?"
    rf"\s*[:=#]?\s*[\[(]?\s*(?P<n>\d+)(?:\s*(?:/|of)\s*(?P<of>\d+))?\s*[\])]?:?{END}"
    rf"|(?i:(?P<over>end of training|(?:completed?|done|finished)(?:\s+in\s+{_TIME})?|took\s+{_TIME}))\b"
    r"(?!\s*[:=]\s*[-+.\d])[.:!]*"
    rf"|(?P<name>{_WORD}(?: {_WORD}){{0,3}}?)(?P<sign>\s*[:=]\s*|\s+)"
    rf"(?:\d+/\d+\s*\((?P<percent>{NUMBER})%\)|(?P<value>{NUMBER})"
    rf"(?P<unit>\s?%|\s?(?:ms|us|µs|s|m|h|[KMG]i?B|[a-z]+/s(?:ec)?)\b)?(?:\s*\(\s*(?:{NUMBER})%?\s*\))?{END})"
    rf"|[\[(]?(?P<phase>[A-Za-z]+)[\])]?(?: set)?\s*(?:[:>]|(?<=[\])])|(?=\s*\||{_STEP}\s*[:#]?\s*[\[(]?\d))"
    r"|[\[(]?\s*(?P<at>\d+)\s*/\s*(?P<total>\d+)(?:\s+(?:batches|steps|iters|iterations|samples))?"
    rf"\s*(?:\(\s*{_AMOUNT}%\s*\))?\s*[\])]?(?![\w/.])"
    rf"|\(?(?:{_AMOUNT}%|{_TIME}(?:/(?:step|epoch|it|iter|batch|sample))?\b|{_AMOUNT}\s?[a-z]+/s(?:ec)?\b)\)?"
    r"|\d+:\d\d(?::\d\d)?(?![\w:.])"
)
# A number of a line that another may stand in for: not in a name, its sign aside.
_TOKEN = re.compile(r"(?<![\w.@])(?<![\w.@/][-+])(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\d.@])")
_JOINED = frozenset((",", ":", ".", "-"))  # between two of them: a date, a clock, thousands

Span = tuple[int, int]


class PlainLines:
    """Readings of plain lines. The shape of a line that had one is remembered: another line of that shape
    differs in its numbers alone, and each number is of the same kind, whole or not."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[object, ...], _Shape] = {}

    def known(self, text: str) -> Reading | None:
        """The reading of a line whose shape is known."""
        if not self._shapes:
            return None
        key, tokens = _key(text[_begin(text) :])
        shape = self._shapes.get(key)
        return shape.reading(tokens) if shape else None

    def read(self, text: str) -> Reading | None:
        """The reading of any line."""
        begin = at = _begin(text)
        line = _Line(text, begin)
        while at < len(text):
            match = _PARTS.match(text, at)
            if not match or match.end() == at or not line.take(match):
                return None
            at = match.end()
        reading = line.reading()
        if reading:
            self._remember(text, begin, line)
        return reading

    def _remember(self, text: str, begin: int, line: _Line) -> None:
        rest = text[begin:]
        key, tokens = _key(rest)
        shape = line.shape([(begin + m.start(), begin + m.end()) for m in _TOKEN.finditer(rest)])
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


def _begin(text: str) -> int:
    """Where a line begins, after what a logger puts before it."""
    logged = _LOGGED.match(text)
    return logged.end() if logged else 0


class _Shape(NamedTuple):
    """Numbers of a line by their places among its tokens; a value has its sign with it."""

    values: tuple[tuple[str, int, bool], ...]
    epoch: int | None
    step: int | None
    place: tuple[int, int] | None

    def reading(self, tokens: list[str]) -> Reading:
        values = {
            name: -float(tokens[at]) if negative else float(tokens[at]) for name, at, negative in self.values
        }
        epoch = None if self.epoch is None else int(tokens[self.epoch])
        step = None if self.step is None else int(tokens[self.step])
        place = self.place and (int(tokens[self.place[0]]), int(tokens[self.place[1]]))
        return _reading(values, epoch, step, place)


def _reading(
    values: dict[str, float], epoch: int | None, step: int | None, place: tuple[int, int] | None
) -> Reading:
    if step is None:
        step = epoch
    if epoch is not None and place:
        step = epoch * place[1] + place[0]
    return Reading(values, step, whole=step is not None or not place or place[0] >= place[1])


class _Line:
    """The parts of a line, one after the other. Numbers are kept as their spans."""

    def __init__(self, text: str, begin: int) -> None:
        self._text, self._begin = text, begin
        self._barred = "|" in text or text.startswith("* ", begin)
        self._found: list[tuple[str, Span]] = []
        self._names: list[Span] = []
        self._epoch: Span | None = None
        self._step: Span | None = None
        self._place: tuple[Span, Span] | None = None  # n of total
        self._phase = ""

    def take(self, match: re.Match[str]) -> bool:
        """False if this part is not of such a line."""
        if match.lastgroup is None:  # a gap, a bar, a time
            return True
        if name := match["name"]:
            self._names.append(match.span("name"))
            return self._take_pair(match, [word.rstrip(".") for word in name.lower().split()])
        if match["step"]:
            self._take_step(match)
        elif match["total"]:
            self._place = (match.span("at"), match.span("total"))
        elif phase := match["phase"]:
            self._phase = phase.lower()
            return self._phase in PHASES
        elif over := match["over"]:
            return self._is_stepped or over[:3].lower() == "end"
        return True

    def _take_step(self, match: re.Match[str]) -> None:
        if match["step"].lower() in ("epoch", "ep"):
            self._epoch = match.span("n")
            return
        self._step = match.span("n")
        if self._epoch is not None and match["of"]:  # Epoch [3/10], Step [100/600]
            self._place = (match.span("n"), match.span("of"))

    def _take_pair(self, match: re.Match[str], words: list[str]) -> bool:
        if len(words) == 2 and words[0] in PHASES and words[1] == "epoch" and match["value"]:
            self._phase, self._epoch = words[0], match.span("value")  # Train Epoch: 1
            return True
        if len(words) > 1 and not all(map(_is_word, words)):
            return False
        if not match["sign"].strip() and not self._needs_no_sign(match, words):
            return False
        if match["unit"] in (None, "%", " %") and words[0] not in NOISE:
            of_phase = self._phase and PHASES.isdisjoint(re.split(r"[\W_]+", "_".join(words)))
            name = "_".join([self._phase, *words] if of_phase else words)
            self._found.append((name, match.span("percent" if match["percent"] else "value")))
        return True

    def _needs_no_sign(self, match: re.Match[str], words: list[str]) -> bool:
        """Whether a name may stand before its value without a sign between them: beside a step, between bars,
        or all by itself if it can only be a variable's, like test_score. Any name may after a metric, as in
        `Episode 10, reward 23.0, epsilon 0.3`."""
        name = " ".join(words)
        if self._is_stepped or self._barred:
            known = words[0] in (*NOISE, "lr", "mfu") or is_rate(name) or is_metric(name, weak=True)
            return known or (self._is_stepped and self._holds_metric() and words[0] not in LINKS)
        is_all = match.start() == self._begin and match.end() == len(self._text)
        return is_all and "_" in name and is_metric(name) and bool(FLOAT.search(match["value"] or ""))

    def _holds_metric(self) -> bool:
        return any(is_metric(name) for name, _ in self._found)

    @property
    def _is_stepped(self) -> bool:
        return self._step is not None or self._epoch is not None

    def reading(self) -> Reading | None:
        found = [(name, self._at(span)) for name, span in self._found]
        if not has_metric(found, self._is_stepped):
            return None
        epoch = whole_number(self._at(self._epoch)) if self._epoch else None
        step = int(self._at(self._step)) if self._step else None
        place = self._place and (int(self._at(self._place[0])), int(self._at(self._place[1])))
        return _reading(clean(found), epoch, step, place)

    def shape(self, tokens: list[Span]) -> _Shape | None:
        """The shape of this line, if its numbers are tokens and its names hold none."""
        places = {span: at for at, span in enumerate(tokens)}
        counts = [span for span in (self._epoch, self._step, *(self._place or ())) if span]
        values = {clean_name(name): span for name, span in self._found}
        numbers = [*counts, *(self._unsigned(span) for span in values.values())]
        in_names = any(start <= at < end for start, end in self._names for at, _ in tokens)
        if in_names or not places.keys() >= {*numbers} or not all(self._at(n).isdecimal() for n in counts):
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
        )

    def _unsigned(self, span: Span) -> Span:
        return (span[0] + (self._text[span[0]] in "+-"), span[1])

    def _at(self, span: Span) -> str:
        return self._text[span[0] : span[1]]


def _is_word(word: str) -> bool:
    return (
        word in PHASES or word in QUALIFIERS or word in NOISE or word == "per" or is_metric(word, weak=True)
    )
