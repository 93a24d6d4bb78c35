"""What bench_rate trains, as a user of the trainer gives it: `rate_models.py:name`."""

from __future__ import annotations

from dataclasses import replace

import torch
from torchvision.models import resnet50
from torchvision.models.vision_transformer import VisionTransformer

from hostler.train.config import Config
from hostler.train.data.npz import PIXELS, scaled
from hostler.train.data.split import IMAGES, Arrays, Data
from hostler.train.models.normal import centre
from hostler.train.models.tiny import resnet

LARGE, SMALL = 224, 32
CLASSES = 1000


def resnet_50(config: Config, data: Data) -> torch.nn.Module:
    return resnet50(num_classes=CLASSES)


def resnet_50_bytes(config: Config, data: Data) -> torch.nn.Module:
    """With the mean and deviation of published weights, as timm's has them."""
    model = resnet50(num_classes=CLASSES)
    centre(model, data, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    return model


def vit_s16(config: Config, data: Data) -> torch.nn.Module:
    return VisionTransformer(
        image_size=LARGE, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536,
        num_classes=CLASSES,
    )  # fmt: skip


def resnet_18(config: Config, data: Data) -> torch.nn.Module:
    return resnet(18, 3, CLASSES)


def large(config: Config) -> Data:
    return _made(LARGE, 16 * config.batch_size)


def large_bytes(config: Config) -> Data:
    return replace(_made(LARGE, 16 * config.batch_size, bytes_of=True), prepare=scaled, pixels=PIXELS)


def small(config: Config) -> Data:
    return _made(SMALL, 50_000)


def _made(side: int, count: int, *, bytes_of: bool = False) -> Data:
    """On the device from the beginning."""
    shape = (count, 3, side, side)
    x = torch.randn(shape, device="cuda")
    if bytes_of:
        x = torch.randint(256, shape, dtype=torch.uint8, device="cuda")
    y = torch.randint(CLASSES, (count,), device="cuda")
    return Data({"train": Arrays(x, y)}, (3, side, side), CLASSES, IMAGES)
