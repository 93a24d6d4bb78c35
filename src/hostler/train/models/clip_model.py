"""`clip/NAME[/WAY]`: CLIP by open_clip, to classify pictures.

The ways: `fine_tune` trains the tower of pictures and a linear head that begins as the texts of the classes,
`linear_probe` that head alone, `two_towers` both towers, `zero_shot` nothing.
`clip/tiny` is a small one for tests; `model_options` change the parts of any.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.split import IMAGES, Data
from hostler.train.library import need
from hostler.train.models import weights
from hostler.train.models.normal import centre

FINE_TUNE, PROBE, ZERO_SHOT, TWO = "fine_tune", "linear_probe", "zero_shot", "two_towers"
WAYS = (FINE_TUNE, PROBE, ZERO_SHOT, TWO)
PROMPTS = ("a photo of a {}.", "a picture of the {}.", "a small {}.")
_AT_ONCE = 64  # classes
TINY: dict[str, Any] = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}


def build(rest: str, config: Config, data: Data, outputs: int) -> torch.nn.Module:
    library = need("open_clip", "open_clip_torch", config.model)
    name, _, way = rest.partition("/")
    way = way or FINE_TUNE
    _check_way(way, config, data, outputs)
    clip, code, width = _clip(library, name, config)
    _check_size(clip, config, data)
    path = config.model_pretrained if isinstance(config.model_pretrained, str) else None
    ours = path is not None and any(one.startswith(("tower.", "clip.")) for one in weights.read(path))
    if path is not None and not ours:
        weights.load(clip, path, whole=True)
    tokens = _tokens(code, data) if data.classes else None
    if way == TWO and tokens is not None:
        made: torch.nn.Module = Towers(clip, tokens)
    else:
        head = _head(clip, torch.nn.Linear(width, outputs, bias=way != ZERO_SHOT), tokens, way)
        made = Probe(clip.visual, head, frozen=way in (PROBE, ZERO_SHOT))
    if path is not None and ours:
        weights.load(made, path)
    centre(made, data, library.OPENAI_DATASET_MEAN, library.OPENAI_DATASET_STD)
    return made


class Probe(torch.nn.Module):
    """A tower and a linear head; the tower may be frozen."""

    def __init__(self, tower: torch.nn.Module, head: torch.nn.Linear, *, frozen: bool) -> None:
        super().__init__()
        self.tower, self.head, self._frozen = tower, head, frozen
        if frozen:
            tower.requires_grad_(False)

    def train(self, mode: bool = True) -> Probe:
        super().train(mode)
        if self._frozen:
            self.tower.eval()  # its norms keep what they have counted
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._frozen):
            features = F.normalize(self.tower(x), dim=-1)
        out: torch.Tensor = self.head(features)
        return out


class Towers(torch.nn.Module):
    """Pictures against the texts of all classes."""

    tokens: torch.Tensor

    def __init__(self, clip: torch.nn.Module, tokens: torch.Tensor) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("tokens", tokens, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pictures = self.clip.encode_image(x, normalize=True)  # type: ignore[operator]
        out: torch.Tensor = self.clip.logit_scale.exp() * pictures @ texts(self.clip, self.tokens).T  # type: ignore[operator]
        return out


def texts(clip: Any, tokens: torch.Tensor) -> torch.Tensor:
    """A direction for each class: the mean over its prompts. `tokens`: class × prompt × place."""
    tensor = torch.cat(
        [clip.encode_text(word.flatten(0, 1), normalize=True) for word in torch.split(tokens, _AT_ONCE)]
    )
    return F.normalize(tensor.reshape(*tokens.shape[:2], -1).mean(1), dim=-1)


def _check_size(clip: Any, config: Config, data: Data) -> None:
    size = getattr(clip.visual, "image_size", None)
    size = (size, size) if isinstance(size, int) else tuple(size or data.input_shape[1:])
    if data.input_shape != (3, *size):
        here, there = "×".join(map(str, data.input_shape)), "×".join(map(str, (3, *size)))
        raise SpecError(
            f"{config.model} takes pictures of {there}, but these are {here}", hint=f"image_size: {size[0]}"
        )


def _check_way(way: str, config: Config, data: Data, outputs: int) -> None:
    if way not in WAYS:
        raise SpecError(
            f"{config.model}: {way!r} is not a way to use it", did_you_mean(way, WAYS, ", ".join(WAYS))
        )
    if data.kind != IMAGES:
        raise SpecError(f"{config.model} takes pictures, but the data are {data.kind}")
    if way in (ZERO_SHOT, TWO) and len(data.classes) != outputs:
        raise SpecError(
            f"{config.model} needs the names of {outputs} classes, but there are {len(data.classes)}",
            hint=f"clip/NAME/{FINE_TUNE}",
        )
    if way == ZERO_SHOT and config.train_length:
        raise SpecError(f"{ZERO_SHOT} trains nothing", hint=f"train_length: 0, or clip/NAME/{FINE_TUNE}")


def _head(clip: Any, head: torch.nn.Linear, tokens: torch.Tensor | None, way: str) -> torch.nn.Linear:
    """It begins as the texts of the classes, where they have names; that of a probe at random."""
    if tokens is None or way == PROBE:
        return head
    with torch.no_grad():
        head.weight[: len(tokens)] = clip.logit_scale.exp() * texts(clip.eval(), tokens)
        if head.bias is not None:
            head.bias.zero_()
    clip.train()
    return head


def _tokens(code: Any, data: Data) -> torch.Tensor:
    said = [[prompt.format(_words(class_)) for prompt in PROMPTS] for class_ in data.classes]
    return torch.stack([code(one) for one in said])


def _words(name: str) -> str:
    return name.replace("_", " ").strip()


def _clip(library: Any, name: str, config: Config) -> tuple[Any, Any, int]:
    """The model, its tokenizer, and how wide its features are."""
    known = {_plain(model): model for model in library.list_models()}
    if name != "tiny" and _plain(name) not in known:
        hint = did_you_mean(_plain(name), known, "open_clip.list_models() has the names")
        raise SpecError(f"open_clip has no model {name!r}", hint)
    shape = copy.deepcopy(TINY if name == "tiny" else library.get_model_config(known[_plain(name)]))
    _change(shape, config.model_options, config)
    context = int(shape["text_cfg"].get("context_length", 77))
    if name == "tiny" or config.model_options:
        clip = _of_parts(library, shape, config)
        code: Any = library.SimpleTokenizer(context_length=context)
    else:
        clip, code = _named(library, known[_plain(name)], config)
    return clip, code, int(shape["embed_dim"])


def _named(library: Any, name: str, config: Config) -> tuple[Any, Any]:
    tags = library.list_pretrained_tags_by_model(name)
    fetch = config.model_pretrained is True
    if fetch and not tags:
        raise SpecError(f"weights of {config.model} were not found", hint="model_pretrained: PATH of some")
    try:
        clip = library.create_model(name, pretrained=tags[0] if fetch else None, load_weights=fetch)
        return clip, library.get_tokenizer(name)
    except (OSError, RuntimeError) as error:
        first = (str(error).strip() or type(error).__name__).partition("\n")[0]
        raise MissingError(
            f"{config.model} cannot be fetched: {first}", hint="model_pretrained: PATH of weights, or false"
        ) from None


def _of_parts(library: Any, shape: dict[str, Any], config: Config) -> Any:
    if config.model_pretrained is True:
        raise SpecError(f"{config.model} has no pretrained weights for these options")
    if not isinstance(shape["text_cfg"], dict) or "hf_model_name" in shape["text_cfg"]:
        raise SpecError(f"{config.model} cannot be changed by model_options")
    try:
        return library.CLIP(**shape)
    except (TypeError, AssertionError, ValueError, KeyError) as error:
        raise SpecError(f"{config.model}: {error}", hint="model_options") from None


def _change(shape: dict[str, Any], options: Any, config: Config) -> None:
    for name, value in options.items():
        if name not in shape:
            hint = did_you_mean(name, shape, ", ".join(shape))
            raise SpecError(f"model_options of {config.model}: no option named {name!r}", hint)
        if isinstance(shape[name], dict) and isinstance(value, dict):
            shape[name].update(value)
        else:
            shape[name] = value


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace("/", "")
