"""Refusals of Compute Engine in plain words: one table, for calls and finished operations alike.

An error of an operation has a code (`ZONE_RESOURCE_POOL_EXHAUSTED`), one of a call a status and a reason
(403 `accessNotConfigured`). What follows is one of: another zone, another region, once more, or stop.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hostler.backends.capacity import AGAIN, OUT, REGION, STOP, Reason

QUOTAS = "https://console.cloud.google.com/iam-admin/quotas"


_GPUS = Reason(
    STOP,
    "the project's quota of GPUs in all regions is used up (GPUS_ALL_REGIONS)",
    f"ask for more at {QUOTAS}; lower `workers` until then",
)
_QUOTA = Reason(
    REGION, "a quota of the region is used up", f"ask for more at {QUOTAS}, lower `workers`, or add zones"
)
_FAILED = Reason(AGAIN, "Compute Engine failed for a moment")
_INVALID = Reason(
    STOP,
    "Compute Engine does not accept the request",
    "check `machine`, `gpu`, `image`, `disk`, `network` and `subnetwork`",
)
_REFUSED = Reason(STOP, "Compute Engine refused")
_MISSING = Reason(
    STOP, "Compute Engine did not find it", "check `project`, `zones`, `machine`, `image` and `network`"
)
_BUSY = Reason(AGAIN, "Compute Engine asks to wait")

_CODES = (
    (r"ZONE_RESOURCE_POOL_EXHAUSTED|STOCKOUT|RESOURCE_POOL_EXHAUSTED", OUT),
    (r"QUOTA.*GPUS_ALL_REGIONS|GPUS_ALL_REGIONS.*QUOTA", _GPUS),
    (r"QUOTA_?EXCEEDED|quotaExceeded|limitExceeded", _QUOTA),
    (r"RESOURCE_NOT_READY|RESOURCE_OPERATION_RATE_EXCEEDED|rateLimitExceeded|RATE_LIMIT", _BUSY),
    (r"backendError|internalError|INTERNAL_ERROR|TIMEOUT", _FAILED),
    (
        r"accessNotConfigured|SERVICE_DISABLED",
        Reason(
            STOP,
            "the Compute Engine API is not enabled in that project",
            "gcloud services enable compute.googleapis.com, or enable it in the console; then try again",
        ),
    ),
    (
        r"authError|UNAUTHENTICATED|unauthorized",
        Reason(STOP, "Google does not accept the credentials", "gcloud auth application-default login"),
    ),
    (
        r"SERVICE_ACCOUNT_ACCESS_DENIED|iam\.serviceAccounts\.actAs|serviceAccountUser",
        Reason(
            STOP,
            "you may not start VMs as that service account",
            "grant yourself roles/iam.serviceAccountUser on it, or set `service_account`",
        ),
    ),
    (
        r"forbidden|PERMISSION|insufficientPermissions|accessDenied",
        Reason(STOP, "the account may not do that", "docs/gce.md lists the permissions hostler needs"),
    ),
    (r"resourceInUseByAnotherResource|RESOURCE_IN_USE", Reason(AGAIN, "it is still in use")),
    (r"alreadyExists|ALREADY_EXISTS", Reason(STOP, "the name is taken already")),
    (r"notFound|NOT_FOUND", _MISSING),
    (
        r"invalid|required|INVALID|UNSUPPORTED|badRequest|conditionNotMet",
        _INVALID,
    ),
)  # fmt: skip


def reason(code: str, message: str = "") -> Reason:
    """Meaning of a code, or a call's reason; an unknown one stops, and is shown as it is."""
    for pattern, found in _CODES:
        if re.search(pattern, f"{code} {message}" if "GPUS_ALL" in pattern else code):
            return found
    if re.search(r"quota", message, re.IGNORECASE) and "exceeded" in message.lower():
        return _GPUS if "GPUS_ALL_REGIONS" in message else _QUOTA
    return _REFUSED


def of_machine(code: str, message: str) -> Reason:
    """Why a group cannot make a machine; what only Google's own words explain has them."""
    found = reason(code, message)
    unclear = found in (_INVALID, _REFUSED, _MISSING)
    return replace(found, words=f"{found.words}: {message}") if unclear and message else found


def of_call(status: int, code: str, message: str) -> Reason:
    """Meaning of a refused call: by its reason, or by its status where that says nothing."""
    if status == 404 and re.search(r"projects?/[^/']+'? was not found|resource 'projects/[^/']+'", message):
        return Reason(
            STOP, "the project does not exist, or you may not see it", "check `project` of the fleet"
        )
    if code and (found := reason(code, message)) != _REFUSED:
        return found
    if status == 429 or status >= 500:
        return _BUSY
    by_status = {401: "authError", 403: "forbidden", 404: "notFound", 409: "alreadyExists", 400: "invalid"}
    return reason(by_status.get(status, ""), message)
