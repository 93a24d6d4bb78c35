"""`hf/causal/WHAT` and `hf/text/WHAT`: language models and text classifiers of transformers.

WHAT is a kind (gpt2, bert, …: made with random weights, sized by `model_options`), a folder with its config,
or, with `model_pretrained: true`, a folder with weights or a name whose weights can be fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.split import TEXT, Data
from hostler.train.library import need

CAUSAL, CLASSIFIER = "causal", "text"
_LENGTHS = ("n_positions", "max_position_embeddings", "max_sequence_length")


def build(rest: str, config: Config, data: Data, outputs: int) -> torch.nn.Module:
    task, _, what = rest.partition("/")
    if task not in (CAUSAL, CLASSIFIER) or not what:
        raise SpecError(f"no model named hf/{rest}", hint="hf/causal/gpt2, hf/text/bert")
    if data.kind != TEXT:
        raise SpecError(f"{config.model} takes texts, but the data are {data.kind}", hint="dataset: hf/…")
    if (task == CAUSAL) != (data.padding is None):
        other = CLASSIFIER if task == CAUSAL else CAUSAL
        text = "the next tokens" if data.padding is None else "classes"
        raise SpecError(
            f"{config.model} does not fit {config.dataset}, whose targets are {text}",
            hint=f"hf/{other}/{what}",
        )
    transformers = need("transformers", "transformers", config.model)
    auto = transformers.AutoModelForCausalLM
    if task == CLASSIFIER:
        auto = transformers.AutoModelForSequenceClassification
    options = {**_wanted(task, data, outputs), **config.model_options}
    try:
        if config.model_pretrained is True:
            inside = _fetched(auto, what, options, config)
        else:
            _check_options(transformers, what, config)
            inside = _random(transformers, auto, what, options, data.vocabulary)
    except (OSError, ValueError, TypeError, AssertionError, ZeroDivisionError, KeyError) as error:
        raise SpecError(f"{config.model} with {options}: {_first(error)}", hint="model_options") from None
    _check_sizes(inside, config, data)
    return Texts(inside, data.padding)


class Texts(torch.nn.Module):
    """Tokens to logits; what only fills a text up is not looked at."""

    def __init__(self, body: torch.nn.Module, padding: int | None) -> None:
        super().__init__()
        self.body, self._padding = body, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = None if self._padding is None else (x != self._padding).long()
        out: torch.Tensor = self.body(input_ids=x, attention_mask=mask).logits
        return out


def _wanted(task: str, data: Data, outputs: int) -> dict[str, Any]:
    """Options of the model that the data settle."""
    if task == CAUSAL:
        return {"use_cache": False}
    return {"num_labels": outputs, "pad_token_id": data.padding}


def _check_options(transformers: Any, what: str, config: Config) -> None:
    """transformers takes any name, and does nothing with those it does not know."""
    if Path(what).is_dir():
        plain = transformers.AutoConfig.from_pretrained(what)
    elif what in transformers.CONFIG_MAPPING:
        plain = transformers.CONFIG_MAPPING[what]()
    else:
        return
    for name in config.model_options:
        if not hasattr(plain, name):
            raise SpecError(f"{what} has no option {name!r}", did_you_mean(name, list(plain.to_dict())))


def _random(
    transformers: Any, auto: Any, what: str, options: dict[str, Any], vocabulary: int
) -> torch.nn.Module:
    if Path(what).is_dir():
        shape = transformers.AutoConfig.from_pretrained(what, **options)
    elif what in transformers.CONFIG_MAPPING:
        none = {"bos_token_id": None, "eos_token_id": None}  # the kind's own may be beyond this vocabulary
        shape = transformers.AutoConfig.for_model(what, **{"vocab_size": vocabulary, **none, **options})
    else:
        hint = did_you_mean(
            what, list(transformers.CONFIG_MAPPING), "a kind such as gpt2 or bert, or a folder"
        )
        raise SpecError(f"transformers has no model {what!r}", hint)
    model: torch.nn.Module = auto.from_config(shape)
    return model


def _fetched(auto: Any, what: str, options: dict[str, Any], config: Config) -> torch.nn.Module:
    """With weights; a head of another width begins anew, anything else that does not fit is refused."""
    try:
        model, report = auto.from_pretrained(
            what, ignore_mismatched_sizes=True, output_loading_info=True, **options
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingError(
            f"the weights of {config.model} are not available: {_first(error)}",
            hint="a folder with config.json and weights",
        ) from None
    unfit = _unfit(model, report)
    if unfit:
        shown = ", ".join(unfit[:3]) + (f", and {len(unfit) - 3} more" if len(unfit) > 3 else "")
        raise SpecError(f"{what} holds weights of another model than {config.model}: {shown} do not fit")
    found: torch.nn.Module = model
    return found


def _unfit(model: Any, report: Mapping[str, Any]) -> list[str]:
    """Weights of the body that have another shape there, or are not there: one or two may be new, as a pooler
    is, but not most. Those of the head may be."""
    body = {name for name in model.state_dict() if name.startswith(f"{model.base_model_prefix}.")}
    other = {key[0] if isinstance(key, tuple) else key for key in report["mismatched_keys"]} & body
    missing = set(report["missing_keys"]) & body
    return sorted(other | missing) if other or 2 * len(missing) > len(body) else []


def _check_sizes(model: Any, config: Config, data: Data) -> None:
    shape = model.config
    tokens = int(getattr(shape, "vocab_size", data.vocabulary))
    if tokens < data.vocabulary:
        raise SpecError(
            f"{config.model} knows {tokens} tokens, but {config.dataset} has {data.vocabulary}",
            hint="tokenizer: that of the model",
        )
    lengths = [int(getattr(shape, name)) for name in _LENGTHS if getattr(shape, name, None)]
    if lengths and min(lengths) < data.input_shape[0]:
        raise SpecError(
            f"{config.model} takes {min(lengths)} tokens, but the texts have {data.input_shape[0]}",
            hint=f"text_length: {min(lengths)}",
        )


def _first(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0]
