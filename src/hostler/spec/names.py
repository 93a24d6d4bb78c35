"""Names that are safe as key parts, file names and cloud labels."""

from __future__ import annotations

import posixpath
import re
import unicodedata

from hostler.errors import UsageError

MAX = 48  # room for an index, a hash and a generation inside every platform's limit

WORK = "work"  # name of a run's working folder

_PART = re.compile(r"[A-Za-z0-9._=+,@-]{1,200}")


def slug(text: str, limit: int = MAX) -> str:
    """A readable safe name for any text; texts that differ keep different names. `limit` is 10 or more."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    safe = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._").lower()
    if safe and safe == text and len(safe) <= limit:
        return safe
    return f"{safe[: limit - 7].strip('-._') or 'run'}-{_mark(text)}"


def sweep_name(text: str) -> str:
    """The name of a sweep that a person calls so: their own word, capitals too, else its slug."""
    small = text.lower()
    return text if slug(small) == small and text.isascii() else slug(text)


def _mark(text: str) -> str:
    return _hash(text.encode("utf-8", "surrogatepass"))[:6]


def as_label(text: str) -> str:
    """A name that clouds take as a label's value: no dots; texts that differ keep different ones."""
    safe = re.sub(r"[^a-z0-9-]+", "-", plain := slug(text)).strip("-")
    return safe if safe == plain else f"{safe}-{_mark(text)}"


def store_label(url: str) -> str:
    """A store in the few letters that a label takes."""
    return _hash(url.rstrip("/").encode())[:10]


def _hash(data: bytes) -> str:
    import hashlib  # with OpenSSL; most looks at a store hash nothing

    return hashlib.sha256(data).hexdigest()


def place_of_data(text: str) -> str:
    """`at:` of data, a path from the working folder on, in its shortest form; it may begin with one `..`, and
    stays in the run's own folder. ValueError otherwise."""
    path = posixpath.normpath(text)
    inside = path.removeprefix("../")
    if path.startswith(("/", "~")) or inside in (".", "..") or inside.startswith("../") or "\0" in text:
        raise ValueError(
            f"{text!r} is not a place in the run's own folder (like data/shakespeare, or ../data beside it)"
        )
    if path == f"../{WORK}" or path.startswith(f"../{WORK}/"):
        raise ValueError(f"{text!r} is the working folder itself (like {inside[len(WORK) + 1 :] or 'data'})")
    return path


def is_part(text: str) -> bool:
    """Whether a text may stand in a key."""
    return _PART.fullmatch(text) is not None and text not in (".", "..")


def check_part(part: str) -> str:
    """The part itself if it may stand in a key; an error that names it otherwise."""
    if not is_part(part):
        raise UsageError(f"{part!r} is not a name hostler can use", hint="letters, digits and . _ - only")
    return part


def is_tag(text: str) -> bool:
    """Whether a text can be a tag: printable, without spaces and commas."""
    return bool(text) and text.isprintable() and not any(c.isspace() or c == "," for c in text)
