"""Secrets in shell scripts: found in many spellings, replaced by variables, and the script does the same."""

from __future__ import annotations

import subprocess

import pytest

from hostler.spec.formats import shell, withheld

KEY = "s3cr3t/v4lue+x"
LONG = "0123456789abcdef0123456789abcdef01234567"
SAY = (
    'say() { printf "[%s]" "$@"; [ -t 0 ] || cat; }\nfor one in curl wandb hf huggingface-cli docker git pip'
)
SAY += ' aws python gh psql; do eval "$one() { say $one \\"\\$@\\"; }"; done\n'
SPELLINGS = [
    (f"python t.py --token {KEY}", "TOKEN"),
    (f"python t.py --token={KEY} --lr 1", "TOKEN"),
    (f"python t.py --token '{KEY}'", "TOKEN"),
    (f'python t.py --api-key="{KEY}"', "API_KEY"),
    (f"python t.py --lr 1 --quiet --api_key \\\n  {KEY} --more", "API_KEY"),
    (f"python t.py -password {KEY}", "PASSWORD"),
    (f"python t.py tracker.api_key={KEY}", "API_KEY"),
    (f"python t.py --wandb-key {LONG}", "WANDB_KEY"),
    ("python t.py --password 's3cr3t$x,}y' --lr 1", "PASSWORD"),
    ("export DB_PASSWORD=s3cr3t,}y; echo $DB_PASSWORD", "DB_PASSWORD"),
    (f"huggingface-cli login --token {KEY}", "HF_TOKEN"),
    (f"hf auth login --add-to-git-credential --token='{KEY}'", "HF_TOKEN"),
    (f"wandb login {KEY}", "WANDB_API_KEY"),
    (f'wandb login --relogin "{KEY}"', "WANDB_API_KEY"),
    (f"wandb login --host https://w.example {KEY}", "WANDB_API_KEY"),
    (f"echo {KEY} | wandb login", "WANDB_API_KEY"),
    (f"wandb login <<< {KEY}", "WANDB_API_KEY"),
    (f"echo -n '{KEY}' | docker login -u me --password-stdin", "DOCKER_PASSWORD"),
    (f"docker login -u me -p {KEY} registry.example", "DOCKER_PASSWORD"),
    (f'curl -H "Authorization: Bearer {KEY}" https://x.example/y', "AUTHORIZATION"),
    (f"curl -H 'Authorization: token {KEY}' https://x.example/y", "AUTHORIZATION"),
    (f"curl --header 'PRIVATE-TOKEN: {KEY}' https://x.example/y", "PRIVATE_TOKEN"),
    (f"curl -s -u me:{KEY} https://x.example/y", "PASSWORD"),
    (f'curl "https://x.example/y?a=1&access_token={KEY}&b=2"', "ACCESS_TOKEN"),
    ("git clone https://me:s3cr3t@x.example/me/code.git", "TOKEN"),
    ("git clone https://s3cr3t:x-oauth-basic@x.example/me/code.git", "TOKEN"),
    ("pip install 'git+https://s3cr3t@x.example/me/code'", "TOKEN"),
    ("psql postgres://me:s3cr3t@x.example/db", "TOKEN"),
    (f"echo {KEY} > /dev/null/huggingface/token || true; echo x", "HF_TOKEN"),
    (f"python t.py --openai-key {KEY}", "OPENAI_KEY"),
    (f"pass={KEY}; echo $pass", "pass"),
    (f"aws configure set aws_secret_access_key {KEY}", "AWS_SECRET_ACCESS_KEY"),
    (f'echo "machine x.example login me password {KEY}"', "NETRC_PASSWORD"),
    (f"""echo '{{"username": "me", "key": "{LONG}"}}' # kaggle""", "KAGGLE_KEY"),
    (f'echo "{{\\"token\\": \\"{KEY}\\"}}"', "TOKEN"),
    (f"python -c \"import wandb; wandb.login(key='{KEY}')\"", "WANDB_API_KEY"),
    (f"export HF_TOKEN={KEY}; echo $HF_TOKEN", "HF_TOKEN"),
    (f'WANDB_API_KEY="{KEY}" say x', "WANDB_API_KEY"),
    (f"declare -x OPENAI_KEY='{KEY}'; echo $OPENAI_KEY", "OPENAI_KEY"),
    (f"echo ${{HF_TOKEN:-{KEY}}}", "HF_TOKEN"),
    (f"cat << END\ntoken: {KEY}\nEND", "TOKEN"),
    (f"if true; then\n  python t.py --token {KEY} # it's mine\nfi", "TOKEN"),
    (f"cat <<'END' | cat\nmachine x login me\n  password {KEY}\nEND\necho \"<< 'X'\"", "NETRC_PASSWORD"),
    (f'cat <<-\\END\n\t{{"token": "{KEY}"}}\n\tEND\n', "TOKEN"),
    ('echo "$(python t.py --token s3cr3t)"', "TOKEN"),
    ("X=1; MINE=ghp_s3cr3tAAAAAAAAAAAAAAAAAAAA; echo $MINE", "MINE"),
    ("python t.py hf_s3cr3tAAAAAAAAAAAAAAAAAAAA", "HF_TOKEN"),
    (f"python t.py --pwd {KEY}", "PASSWORD"),
    (f"python t.py a.2nd_password={KEY}", "_2ND_PASSWORD"),
    (f"echo {KEY} | sudo -S true; echo x", "PASSWORD"),
    (f"python -c \"f(a, token='{KEY}')\"", "token"),
]


@pytest.mark.parametrize(("line", "name"), SPELLINGS, ids=[line[:40] for line, _ in SPELLINGS])
def test_withheld_value_becomes_a_variable_with_equal_effect(line: str, name: str) -> None:
    value = next(
        one
        for one in (
            "s3cr3t$x,}y",
            "s3cr3t,}y",
            KEY,
            LONG,
            "ghp_s3cr3tAAAAAAAAAAAAAAAAAAAA",
            "hf_s3cr3tAAAAAAAAAAAAAAAAAAAA",
            "s3cr3t",
        )
        if one in line
    )
    found = withheld.withhold(line)
    assert "s3cr3t" not in found.text and LONG not in found.text and list(found.names) == [name]
    assert not found.left and name in shell.unknown(found.text)
    assert run(found.text, {name: value}) == run(line, {}) != ""
    assert withheld.withhold(found.text).text == found.text


def test_a_quote_inside_of_a_value_belongs_to_it() -> None:
    assert withheld.withhold('python t.py --token "a\\"b" x').text == 'python t.py --token "$TOKEN" x'


def run(script: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", SAY + script],
        env={"PATH": "/usr/bin:/bin", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "python t.py --tokenizer bert --pad-token '[PAD]' --key lr --key-dim 3 --max-tokens 9 --num_keys=3",
        'python t.py --use-auth-token true --token=$TOKEN --password="$(cat x)" --api-key `cat y`',
        "curl -H 'Metadata-Flavor: Google' http://metadata.example/v1 -H \"Authorization: Bearer $(get)\"",
        "git clone https://me:$TOKEN@x.example/me/code.git && git clone git@x.example:me/code.git",
        "export TOKENIZERS_PARALLELISM=false MAX_TOKENS=9; echo 'note: it is done'",
        "apt-key adv --recv-key 0123456789ABCDEF0123 && python t.py --ema-key model_state_dict_ema_0001",
        "ssh://git@x.example/me http://x.example:8080/a@b",
        "wandb login && wandb login $WANDB_API_KEY; huggingface-cli login",
        "python t.py --private-key ~/.ssh/id_rsa --gcp-key=key.json --s3-key data/train.csv --token '<s>'",
        "export MASTER_KEY_FILE=/x SSH_KEY=/root/.ssh/id SORT_KEY=loss PAD_TOKEN='[PAD]' KEY_DIM=a",
        "TOKEN=$(gcloud secrets versions access latest --secret=github-token --project p)",
        "echo y | gcloud auth configure-docker; echo begun | tee auth.log; echo x > tokenizer.json",
        "python -c \"f(g(1), token=None, secret=x); x(password=getpass(), api_key=os.environ['K'])\"",
        "python - << END\nwandb.login(key=given)\napi_key = os.environ['K']\nx = {'token': tok}\nEND",
    ],
)
def test_what_only_sounds_like_a_secret_stays(line: str) -> None:
    found = withheld.withhold(line)
    assert (found.text, found.names, found.left) == (line, {}, ())


def test_each_withheld_value_has_its_own_name() -> None:
    text = "HF_TOKEN=one\nhf auth login --token two\nhf auth login --token one\ncurl -u a:two x"
    found = withheld.withhold(text)
    assert found.text == (
        'HF_TOKEN="$HF_TOKEN"\nhf auth login --token "$HF_TOKEN_2"\nhf auth login --token "$HF_TOKEN"\n'
        'curl -u a:"$PASSWORD" x'
    )


def test_comment_loses_its_secret_but_literal_document_cannot() -> None:
    assert withheld.withhold("# wandb login s3cr3t\nls").text == "# wandb login ...\nls"
    found = withheld.withhold("cat << 'END'\npassword: s3cr3t\ncost: $5\nEND")
    assert found.left == ("the value of password",) and not found.names


def test_what_may_be_one_is_named() -> None:
    text = "vault login some-words\npython t.py --key from-a-list --sort-key lr --auth $X\nwandb login"
    assert withheld.doubtful(text) == ["--key", "vault login"]


def test_long_line_takes_linear_time() -> None:
    for text in ("a.b" * 100_000, "a=" * 3_000):
        assert withheld.withhold(text).text == text
