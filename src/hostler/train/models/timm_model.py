"""`timm/NAME`: any model of timm, with as many outputs and input channels as the data need."""

from __future__ import annotations

from typing import Any

import torch

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.split import IMAGES, Data
from hostler.train.library import need
from hostler.train.models.normal import centre


def build(rest: str, config: Config, data: Data, outputs: int) -> torch.nn.Module:
    timm = need("timm", "timm", config.model)
    if data.kind != IMAGES:
        raise SpecError(f"{config.model} takes pictures, but the data are {data.kind}", hint="model: linear")
    if not timm.is_model(rest):
        hint = did_you_mean(rest, timm.list_models(), "timm.list_models() has the names")
        raise SpecError(f"timm has no model {rest!r}", hint)
    channels, *sides = config.model_input_shape or data.input_shape
    options: dict[str, Any] = {"num_classes": outputs, "in_chans": channels, **config.model_options}
    if _fixed(timm, rest) and "img_size" not in options:
        options["img_size"] = tuple(sides)
    model = _made(timm, rest, options, config)
    found = getattr(model, "pretrained_cfg", None) or {}
    centre(model, data, found.get("mean"), found.get("std"))
    return model


def _fixed(timm: Any, name: str) -> bool:
    """Whether it is built for one size of pictures."""
    pretrained_cfg = timm.get_pretrained_cfg(name.partition(".")[0])
    return bool(pretrained_cfg is not None and pretrained_cfg.fixed_input_size)


def _made(timm: Any, name: str, options: dict[str, Any], config: Config) -> torch.nn.Module:
    fetch = config.model_pretrained is True
    try:
        model: torch.nn.Module = timm.create_model(name, pretrained=fetch, **options)
        return model
    except (TypeError, AssertionError, ValueError) as error:
        raise SpecError(f"{config.model} with {options}: {_first(error)}", hint="model_options") from None
    except (OSError, RuntimeError) as error:
        if not fetch:
            raise SpecError(f"{config.model} with {options}: {_first(error)}", hint="model_options") from None
        raise MissingError(
            f"the weights of {config.model} cannot be fetched: {_first(error)}",
            hint="model_pretrained: PATH of some",
        ) from None


def _first(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0]
