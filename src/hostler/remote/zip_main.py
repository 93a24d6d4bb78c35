"""The first file that runs when Python is given hostler's zip: `python3 library.zip STORE`, a worker.

It is the zip's __main__ and is read by whatever Python there is, also one too old for the rest: so it keeps
to what they all understand. It looks for a newer one, installs hostler in the cache, and goes on there. What
is in the cache already is taken only if nobody else can write to it and it is what the zip holds.
"""

import hashlib
import os
import sys
import zipfile

OLDEST = (3, 10)


def main():
    # type: () -> None
    if sys.version_info < OLDEST:
        newer()
    from hostler.errors import HostlerError  # of the zip, by a Python that is new enough
    from hostler.remote.install import install_in_cache

    here = os.path.abspath(sys.argv[0])
    with open(here, "rb") as file:
        data = file.read()
    try:
        place = install_in_cache("library", hashlib.sha256(data).hexdigest(), lambda: data)
        compare(here, place)
    except HostlerError as error:
        sys.exit("hostler: %s" % error)
    except OSError as error:
        sys.exit("hostler: %s cannot be written: %s" % (error.filename, error.strerror))
    pythonpath = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([place] + ([pythonpath] if pythonpath else []))
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


if __name__ == "__main__":
    main()
