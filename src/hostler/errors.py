"""Errors, grouped by what a person can do about them.

    HostlerError                 exit 1
    ├── UsageError               exit 2   fix the command line
    │   └── SpecError            exit 2   fix the file (carries file and line)
    ├── MissingError             exit 1   a run, sweep, script or file does not exist
    ├── StoreError               exit 1   fix the store's address, rights or disk
    │   ├── StoreUnreachable     exit 75  wait, then again
    │   ├── StoreGone            exit 1   its bucket does not exist, or no longer does
    │   └── StoreTooLarge        exit 1   an object is larger than the store takes
    ├── MachineError             exit 1   fix this machine: disk, driver, packages, tools
    ├── HostError                exit 1   fix another machine, or the way to it: key, login, Python, disk
    │   └── HostUnreachable      exit 75  wait, then again
    ├── CloudError               exit 1   fix the cloud's side: credentials, rights, quota, names
    │   └── CloudUnavailable     exit 75  no capacity, or no answer: wait, then again
    ├── PrepareError             exit 1   code, data, packages or setup of a run could not be prepared
    ├── DamagedError             exit 1   stored bytes are not what was written
    ├── NewerFormatError         exit 1   upgrade hostler
    ├── Diverged                 exit 1   a training ran away: other parameters
    ├── CallFailed               exit 1   a function that ran elsewhere brought no result
    └── Fenced                   exit 75  another attempt holds the run now; never shown to a person

Each carries an exit code and, where there is one, a hint: what to do next.
"""

from __future__ import annotations


class HostlerError(Exception):
    """An error that hostler raises on purpose: one line, and what to do."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(HostlerError):
    """The command line asks for something impossible."""

    exit_code = 2


class SpecError(UsageError):
    """A file says something impossible; `where` is file and line."""

    def __init__(self, message: str, hint: str = "", *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message, hint)
        self.where = where


class MissingError(HostlerError):
    """A run, sweep, script or file does not exist."""


class StoreError(HostlerError):
    """The store refused: address, rights, disk."""


class StoreUnreachable(StoreError):
    """The store did not answer within the bound; trying later may help."""

    exit_code = 75


class StoreGone(StoreError):
    """The store itself does not exist, or no longer does: waiting does not bring it back."""


class StoreTooLarge(StoreError):
    """The store does not take an object of this size: trying again does not help."""


class MachineError(HostlerError):
    """This machine cannot be used: disk, driver, versions, tools."""


class HostError(HostlerError):
    """Another machine cannot be used, or refuses the login."""


class HostUnreachable(HostError):
    """Another machine did not answer; trying later may help."""

    exit_code = 75


class CloudError(HostlerError):
    """A cloud refused: credentials, rights, quota, names."""


class CloudUnavailable(CloudError):
    """A cloud has no machines now, or does not answer; trying later may help."""

    exit_code = 75


class PrepareError(HostlerError):
    """Code, data, packages or setup of a run could not be prepared."""


class DamagedError(HostlerError):
    """Stored bytes are not what was written."""


class NewerFormatError(HostlerError):
    """Written by a newer hostler; leave it alone."""


class Diverged(HostlerError):
    """Raised by a training whose loss runs away: its run ends as diverged, and is not tried again."""

    def __init__(
        self, message: str, hint: str = "try other parameters, such as a smaller learning rate"
    ) -> None:
        super().__init__(message, hint)


class CallFailed(HostlerError):
    """A function that an executor ran brought no result; `traceback` is what it printed, if anything."""

    def __init__(self, message: str, hint: str = "", *, traceback: str = "") -> None:
        super().__init__(message, hint)
        self.traceback = traceback

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{self.traceback}" if self.traceback else super().__str__()


class Fenced(HostlerError):
    """Another attempt holds the run now, or it has ended: stop writing."""

    exit_code = 75
