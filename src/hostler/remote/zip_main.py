"""The first file that runs when Python is given hostler's zip: `python3 library.zip STORE`, a worker.

It is the zip's __main__ and is read by whatever Python there is, also one too old for the rest: so it keeps
to what they all understand. It looks for a newer one, unpacks hostler into the cache, and goes on there. What
is in the cache already is taken only if nobody else can write to it and it is what the zip holds.
"""

import hashlib
import os
import shutil
import sys
import zipfile

OLDEST = (3, 10)


def main():
    # type: () -> None
    if sys.version_info < OLDEST:
        newer()
    here = os.path.abspath(sys.argv[0])
    with open(here, "rb") as file:
        sha = hashlib.sha256(file.read()).hexdigest()
    place = os.path.join(cache(), "library", sha)
    try:
        close(cache(), os.path.dirname(place))
        if not os.path.isdir(place):
            unpack(here, place)
        close(place)
        compare(here, place)
    except OSError as error:
        sys.exit("hostler: %s cannot be written: %s" % (error.filename or place, error.strerror))
    given = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([place] + ([given] if given else []))
    os.execv(sys.executable, [sys.executable, "-m", "hostler.worker"] + sys.argv[1:])


def newer():
    # type: () -> None
    """Go on with a Python that is new enough, or say in one line that there is none."""
    for minor in range(19, OLDEST[1] - 1, -1):
        name = "python3.%d" % minor
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            exe = os.path.join(folder, name)
            if os.access(exe, os.X_OK):
                os.execv(exe, [exe] + sys.argv)
    found = ".".join(str(part) for part in sys.version_info[:3])
    sys.exit(
        "hostler: Python %s at %s is too old: it needs %d.%d or newer" % ((found, sys.executable) + OLDEST)
    )


def cache():
    # type: () -> str
    given = os.environ.get("HOSTLER_CACHE")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "hostler")


def close(*folders):
    # type: (str) -> None
    """Each is made for this user alone, or is one that nobody else can write to."""
    from pathlib import Path  # of the Python that is new enough, and of the zip

    from hostler import private
    from hostler.errors import MachineError

    for folder in folders:
        try:
            private.closed_folder(Path(folder))
        except MachineError as error:
            sys.exit("hostler: %s" % error)


def compare(here, place):
    # type: (str, str) -> None
    """Leave unless all that the zip holds is in the folder, and nothing beside it."""
    with zipfile.ZipFile(here) as packed:
        wrong = set(os.listdir(place)) - {name.split("/")[0] for name in packed.namelist()}
        for name in packed.namelist():
            try:
                with open(os.path.join(place, name), "rb") as file:
                    same = file.read() == packed.read(name)
            except OSError:
                same = False
            if not same:
                wrong.add(name)
    if wrong:
        sys.exit("hostler: %s is not what was put there: %s (rm -r it)" % (place, sorted(wrong)[0]))


def unpack(here, place):
    # type: (str, str) -> None
    fresh = "%s.%d.tmp" % (place, os.getpid())
    os.makedirs(fresh, 0o700)
    with zipfile.ZipFile(here) as packed:
        packed.extractall(fresh)
    try:
        os.rename(fresh, place)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not os.path.isdir(place):
            raise


if __name__ == "__main__":
    main()
