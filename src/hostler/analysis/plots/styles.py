"""Style files of plots: ours for a paper and for the dark, and anybody's own over it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from hostler.analysis.damage_report import warn
from hostler.errors import UsageError

GLYPH = re.compile(r"Glyph (\d+) ")  # matplotlib's warning of a letter that is in no font
PAPER = "paper"
OWN = (PAPER, "dark")


@contextmanager
def styled(style: str = "") -> Iterator[None]:
    """Plots made inside look as the style says: `dark`, a name that matplotlib knows, or a .mplstyle file."""
    import matplotlib
    from matplotlib import style as styles

    folder = files("hostler.analysis.plots") / "files"
    layers = [str(folder / f"{PAPER}.mplstyle")]
    if style in OWN:
        layers += [str(folder / f"{style}.mplstyle")] * (style != PAPER)
    elif style:
        layers.append(_known(style, styles.available))
    try:
        with styles.context(layers, after_reset=True):
            matplotlib.rcParams["text.parse_math"] = False  # a dollar sign in a name does not begin a formula
            yield
    except OSError as error:
        raise UsageError(f"--style {style}: {error}", hint=_hint()) from None


@contextmanager
def letters_said(place: str) -> Iterator[None]:
    """Letters that no font here has are named in one line, not in a warning for each of them and each use."""
    with warnings.catch_warnings(record=True) as said:
        warnings.filterwarnings("always", message=GLYPH.pattern)
        yield
    missing = dict[str, None]()
    for one in said:
        if match := GLYPH.match(str(one.message)):
            missing[chr(int(match[1]))] = None
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:
        warn(
            f"no font here has {''.join(missing)}: boxes stand for them in {place}; install a font that "
            "has them and name it in a style file (font.family: sans-serif, Noto Sans CJK JP)"
        )


def _known(style: str, names: list[str]) -> str:
    if style in names:
        return style
    path = Path(style)
    if not path.is_file():
        raise UsageError(
            f"--style {style}: no such file, and matplotlib knows no style of this name", _hint()
        )
    _check(path)
    return str(path)


def _check(path: Path) -> None:
    """Every line is a setting that matplotlib knows; it would skip others with a warning in its log."""
    import matplotlib

    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        words = line.partition("#")[0].strip()
        name, colon, value = (part.strip() for part in words.partition(":"))
        if words and (not colon or name not in matplotlib.rcParams):
            raise UsageError(f"{path}:{number}: {words!r} is not a setting of matplotlib", _hint())
        try:
            matplotlib.RcParams({name: value}) if words else None
        except ValueError as error:
            raise UsageError(f"{path}:{number}: {str(error).splitlines()[0]}", _hint()) from None


def _hint() -> str:
    return f"--style FILE.mplstyle with lines like font.size: 9; or {' or '.join(OWN)}"
