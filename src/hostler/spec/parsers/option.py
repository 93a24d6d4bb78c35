"""An option that a parser declares, and all that are known of one script. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from hostler.frozen import dataclass
from hostler.spec.style import Form, same_key

ONE_VALUE = frozenset(
    {"value", "comma", "joined", "json"}
)  # words of `style:` that fit an option with one value

ONE_NUMBER = frozenset({"value"})


@dataclass(frozen=True)
class Option:
    """`accepts` are the words of `style:` that its parser takes; None: not known."""

    names: tuple[str, ...]  # as declared, the long ones first; () if it is told by its place alone
    dest: str  # the key by which the script knows it
    form: Form = field(default_factory=Form)
    accepts: frozenset[str] | None = None
    where: str = ""  # file:line
    how: str = ""  # in words, after "declares --x"
    stuck: bool | None = None  # the value that a flag cannot change from
    counts: tuple[int, int | None] | None = None  # values each time it is given, at least and most
    nests: bool = False  # a value may be a list itself

    @property
    def is_flag(self) -> bool:
        """Whether it surely takes no value."""
        return self.accepts is not None and self.accepts <= {"bare", "no-prefix"}

    @property
    def is_single(self) -> bool:
        """Whether it surely takes one value, and nothing tells how that could be a list."""
        most = self.counts[1] if self.counts else None
        return most == 1 and self.accepts is not None and not self.form.lists

    @property
    def said(self) -> str:
        if not self.names:
            return f"{self.where} takes it by its place, not as an option"
        return f"{self.where} declares {self.names[0]} {self.how}"


@dataclass(frozen=True)
class Declarations:
    """Options of a script. `general` holds for all of them, also for those that cannot be seen."""

    options: tuple[Option, ...] = ()
    general: Form = field(default_factory=Form)
    script: str = ""
    closed: bool = False  # these are surely all, and others are refused
    tied: bool = False  # only --key=value is understood
    hydra: bool = False  # Hydra reads the command line
    pairs: bool = False  # key=value is read, and --key value for something else
    read_lists: Mapping[str, str] = field(default_factory=dict)  # name → how the script splits its text

    def find(self, key: str) -> Option | None:
        """The option of a parameter: by the script's own key, else by a name, in that name's spelling."""
        wanted = same_key(key)
        for option in self.options:
            if same_key(option.dest) == wanted:
                return option
        for option in self.options:
            for name in option.names:
                if same_key(name) == wanted:
                    return _called(option, name)
        return None

    def may_mean(self, key: str) -> bool:
        """Whether argparse would take a key for the beginning of an option's name."""
        return any(
            same_key(name).startswith(same_key(key)) for option in self.options for name in option.names
        )


def _called(option: Option, name: str) -> Option:
    """An option by one of its names: --no-amp of `amp` is given by `no_amp: true`."""
    form = replace(option.form, option=name)
    if form.true is not None and form.false is not None and name in (*form.true, *form.false):
        form = replace(form, booleans="bare", true=(name,), false=())
    return replace(option, form=form)


def merged(options: Iterable[Option]) -> tuple[Option, ...]:
    """One for each key: `--amp` and `--no-amp` of one key go together, others that differ make it unknown."""
    by_key: dict[str, Option] = {}
    for option in options:
        old = by_key.get(option.dest)
        by_key[option.dest] = option if old is None else _both(old, option)
    return tuple(by_key.values())


def _both(one: Option, other: Option) -> Option:
    names = tuple(dict.fromkeys((*one.names, *other.names)))
    forms = (one.form, other.form)
    if {form.booleans for form in forms} == {"bare"} and one.form != other.form:
        on = next((form.true for form in forms if form.true), None)
        off = next((form.false for form in forms if form.false), None)
        if on and off:
            form = replace(one.form, booleans="no-prefix", true=on, false=off)
            return replace(one, names=names, form=form, accepts=frozenset({"bare", "no-prefix"}), stuck=None)
    if one.form == other.form:
        return replace(one, names=names)
    spelled = one.form.option if one.form.option == other.form.option else ""
    return replace(one, names=names, form=Form(option=spelled), accepts=None, stuck=None)
