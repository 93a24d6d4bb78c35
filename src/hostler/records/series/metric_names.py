"""Names and numbers of metrics as tools print them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?(?:nan|NaN|inf|Infinity)"
)
SHOWN = r"tensor\(|np\.float\d+\("  # before a number that PyTorch or NumPy shows
END = r"(?![\w:/]|[.,-]\d|\.$)"  # no date, version, address or clock begins so
FLOAT = re.compile(r"[.%eEnN]")  # how a measured value is written, and a setting like 16 is not
_ODD = re.compile(r"[^\w./-]+")
_AVERAGE_PRECISION = re.compile(r"m?ap[@_-]\d", re.IGNORECASE)  # mAP@0.5, where `map` alone says nothing
_RATE = re.compile(r"(?:[mu]?s|sec|min|h)/\w+|\w+/(?:[mu]?s|sec|second|min|step|it|iter|batch|epoch)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of names. A strong one makes a metric by itself, a weak one beside the name of a part of the data.
STRONG = _words(
    """loss acc accuracy auc auroc aucpr auprc f1 precision recall iou miou dice mae mse rmse rmsle mape r2
    logloss mlogloss merror nll ppl perplexity bleu rouge wer cer psnr ssim fid elbo bpb bpc reward ndcg mrr
    mcc kappa bce xent map50 top1 top5"""
)
WEAK = _words("error err score return entropy map cost kl kld recon fitness objective")
PHASES = _words("train training val valid validation eval evaluation test testing dev")
STEPS = _words("step global_step globalstep iteration iter it epoch ep batch round")
QUALIFIERS = _words(
    """avg average mean median best final last overall running total epoch batch step macro micro weighted top
    grad gradient norm lr learning rate set cls box reg bbox mask rpn roc pr cv oof cross-validation d g
    discriminator generator critic actor policy value kl recon reconstruction adv adversarial aux ce
    contrastive distillation mlm squared absolute root square percentage cross binary categorical sparse
    negative log likelihood"""
)
_MEASURED_ERRORS = _words("squared absolute square")
_SETTINGS = _words(
    """weight weights scale coef coeff coefficient threshold target lambda alpha beta gamma eps epsilon
    smoothing patience thr tol tolerance margin factor decay fn type reduction limit goal every freq window
    cutoff delta clip warmup schedule size num max min stop"""
)
NOISE = _words(
    """time eta elapsed duration remaining seed pid rank port device gpu version v_num data mem memory vram dt
    worker node job id year line exit code"""
)

LINKS = _words(
    "after and at below by for from in is of on or over since than to vs was with"
)  # words of prose


class Reading(NamedTuple):
    """Metrics of a line. `step`: the line's own; None: counted. `restarts`: the step is a bar's, and begins
    anew with each bar. `rounds`: the step is counted from 0 also where a training goes on. `whole`: False of
    a state on the way, which a later line replaces."""

    values: Mapping[str, float]
    step: int | None = None
    restarts: bool = False
    rounds: bool = False
    whole: bool = True
    epoch: float | None = None  # where it has no step: an epoch, perhaps a part of one; else that of the step


@lru_cache(maxsize=1024)
def is_metric(name: str, *, weak: bool = False) -> bool:
    """Whether a name is a metric's, by its words. `weak`: a weak one will do by itself."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if not _SETTINGS.isdisjoint(words):
        return False
    plain_words = {*words, *(word.rstrip("0123456789") for word in words)}
    if "error" in words and not _MEASURED_ERRORS.isdisjoint(words):  # mean squared error
        return True
    if not STRONG.isdisjoint(plain_words) or _AVERAGE_PRECISION.match(name):
        return True
    return not WEAK.isdisjoint(plain_words) and (weak or not PHASES.isdisjoint(words))


def has_metric(found: Iterable[tuple[str, str]], stepped: bool) -> bool:
    """Whether one of these is a metric, and written as a measured value is: 16 may be one beside a step."""
    return any(
        (is_metric(name) and (stepped or FLOAT.search(value)))
        or (stepped and FLOAT.search(value) and is_metric(name, weak=True))
        for name, value in found
    )


@lru_cache(maxsize=1024)
def is_rate(name: str) -> bool:
    """Whether a name is that of a speed: ms/batch, tok/s."""
    return bool(_RATE.fullmatch(name)) and not is_metric(name, weak=True)


def clean(found: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Names that columns, plots and conditions can hold, and numbers."""
    values = {clean_name(name): number(value) for name, value in found}
    return {name: value for name, value in values.items() if name not in ("", "v_num") and value is not None}


@lru_cache(maxsize=1024)
def clean_name(name: str) -> str:
    return _ODD.sub("_", name.strip().replace("@", "")).strip("_")


def number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def whole_number(text: str | None) -> int | None:
    value = number(text) if text else None
    return int(value) if value is not None and math.isfinite(value) else None
