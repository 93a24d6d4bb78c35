"""Recognises names of secrets, and values that look like one. Pure."""

from __future__ import annotations

import re

_VARIABLE = re.compile(  # no TOKENIZERS, no KEY_FILE
    r"(KEYS?|TOKEN|SECRETS?|PASSW(OR)?D?S?)(?![A-Z]|_(?:FILE|PATH|DIR|DIM|SIZE|LEN|COUNT|TYPE)S?$)",
    re.IGNORECASE,
)
_TOOL = (
    "wandb|comet|neptune|clearml|mlflow|hf|hub|huggingface|openai|anthropic|kaggle|aws|s3|gcp|google|azure"
    "|gh|git|github|gitlab|slack|bot|ngc"
)
_SURE = re.compile(
    r"(?:^|[^a-z])(?:passw(?:or)?d|pass|pwd|passphrase|passcode|secret|api_?key|authorization|cookie|signature|sas|pat"
    rf"|(?:access|private|secret|auth|account|license|{_TOOL})_?key(?:_id)?"
    rf"|(?:api|access|auth|bearer|refresh|session|id|personal|private|{_TOOL})_?token)$|^token$",
    re.IGNORECASE,
)
_OPEN = re.compile(  # of data and of texts that are learned from, too
    r"(?:^|_)(?:(?:recv|public|pub|sort|primary|foreign|partition|row|host|gpg|image|label|data|input|output|target"
    r"|text)_keys?|(?:pad|bos|eos|sep|cls|mask|unk|special|max|min|num|total)_token)$",
    re.IGNORECASE,
)
_LIKE = re.compile(
    r"(?:^|[^a-z])\w*(?:key|token|secret|password|passwd|credentials?|auth|webhook)$", re.IGNORECASE
)
_SHAPES = {
    "GITHUB_TOKEN": r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    "HF_TOKEN": r"hf_[A-Za-z0-9]{20,}",
    "GITLAB_TOKEN": r"glpat-[\w-]{16,}",
    "SLACK_TOKEN": r"xox[abpr]-[\w-]{10,}",
    "GOOGLE_API_KEY": r"AIza[\w-]{35}",
    "AWS_ACCESS_KEY_ID": r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    "API_KEY": r"sk-[\w-]{20,}|sk_live_\w{16,}",
    "ACCESS_TOKEN": r"ya29\.[\w-]{20,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+",
}
SHAPES = {name: re.compile(rf"(?<![\w-])(?:{shape})(?![\w-])") for name, shape in _SHAPES.items()}
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN = re.compile(
    r"(?i)true|false|yes|no|y|n|on|off|none|null|auto|-?[\d.]{1,6}|<[\w|/-]{1,20}>|\[\w{1,12}\]"
)
_PATH = re.compile(  # one that is sure: a secret may hold slashes, and begin with one
    r"(?:~|\.\.?)/[\w./-]+|/(?:data|etc|home|media|mnt|opt|root|run|srv|tmp|usr|var|workspace)/[\w./-]+"
    r"|[\w./~-]+\.(?:json|pem|key|pub|p12|crt|txt|ya?ml|toml|ini|csv|tar|gz|zip|npz?|pt|pth|jpe?g|png)"
)


def is_variable(name: str) -> bool:
    """Whether a variable of the environment is for secrets, by its name."""
    return bool(_VARIABLE.search(name)) and not _OPEN.search(name)


def is_secret(name: str, value: str) -> bool:
    """Whether it is one, under that name; what a shell fills in is none."""
    if not is_text(value):
        return False
    short = name.replace("-", "_")
    return bool(_SURE.search(short)) or (_is_like(short) and looks_random(value))


def has_shape(value: str) -> bool:
    """Whether a key of a known form stands in it."""
    return any(shape.search(value) for shape in SHAPES.values())


def is_text(value: str) -> bool:
    """No number, no yes or no, no path of a file, and nothing that a shell fills in."""
    return "$" not in value and "`" not in value and not is_plain(value)


def is_plain(value: str) -> bool:
    """Nothing, a number, a yes or no, a sign like <pad>, or the path of a file."""
    return not value or bool(_PLAIN.fullmatch(value) or _PATH.fullmatch(value))


def may_be_secret(name: str, value: str) -> bool:
    """A name like that of a secret, with a value in one piece that does not look like one."""
    one = bool(re.fullmatch(r"[\w.+=:-]{6,}", value))
    return one and _is_like(name.replace("-", "_")) and not is_plain(value)


def looks_random(value: str) -> bool:
    """Letters and digits in one long piece, or a UUID: no words, no path, no file."""
    return bool(_RANDOM.search(value) or _UUID.fullmatch(value))


def _is_like(short: str) -> bool:
    return bool(_LIKE.search(short)) and not _OPEN.search(short)
