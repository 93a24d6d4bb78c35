"""A pod's first step, run as the pod runs it: by a bare Python that knows nothing of hostler."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from hostler.backends.kubernetes import boot, manifest
from hostler.backends.kubernetes.credentials import portable
from hostler.emulators.gcs import GcsEmulator
from hostler.errors import CloudError
from hostler.store import open_store
from servers import BUCKET, CREDENTIALS, make_bucket, moto


def parcel(text: str = "print('brought')") -> tuple[bytes, str]:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("brought.py", text)
    return target.getvalue(), hashlib.sha256(target.getvalue()).hexdigest()


def bring(store: str, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), **variables}
    command = [sys.executable, "-c", manifest.boot(), store, str(folder / "pod"), *words]
    return subprocess.run(command, env=clean, capture_output=True, text=True, timeout=120)


def test_folder_on_a_volume_gives_hostler_to_the_pod(tmp_path: Path) -> None:
    data, sha = parcel()
    (tmp_path / "store" / "library").mkdir(parents=True)
    (tmp_path / "store" / "library" / f"{sha}.zip").write_bytes(data)
    for _ in range(2):  # a second time finds it there
        done = bring(str(tmp_path / "store"), tmp_path, f"library/{sha}.zip={sha}")
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "pod" / "library" / sha / "brought.py").is_file()


def test_what_is_not_there_or_damaged_ends_the_whole_job(tmp_path: Path) -> None:
    data, sha = parcel()
    done = bring(str(tmp_path), tmp_path, f"library/{sha}.zip={sha}")
    assert done.returncode == 2 and "check that the store's folder is mounted there" in done.stdout
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / f"{sha}.zip").write_bytes(data[:-1])
    done = bring(str(tmp_path), tmp_path, f"library/{sha}.zip={sha}")
    assert done.returncode == 2 and "is damaged" in done.stdout
    assert not (tmp_path / "pod" / "library" / sha).exists()


def test_a_bucket_of_google_gives_hostler_to_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, sha = parcel()
    with GcsEmulator("my-bucket") as gcs:
        for name, value in gcs.environ().items():
            monkeypatch.setenv(name, value)
        open_store("gs://my-bucket/runs").put(f"library/{sha}.zip", data)
        done = bring("gs://my-bucket/runs", tmp_path, f"library/{sha}.zip={sha}", **gcs.environ())
        assert done.returncode == 0, done.stdout + done.stderr
        done = bring("gs://my-bucket/none", tmp_path, "library/ff.zip=ff", **gcs.environ())
        assert done.returncode == 2 and "404" in done.stdout and "opens the bucket" in done.stdout


def test_pod_without_identity_ends_the_whole_job(tmp_path: Path) -> None:
    with served(_Nobody) as url:
        host = url.removeprefix("http://")
        done = bring("gs://my-bucket", tmp_path, "library/ff.zip=ff", GCE_METADATA_HOST=host)
    assert done.returncode == 2 and "404" in done.stdout and "opens the bucket" in done.stdout, done.stderr


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[dict[str, str]]:
    with moto(tmp_path) as url:
        make_bucket(url)
        yield {**CREDENTIALS, "AWS_ENDPOINT_URL": url}


def test_a_bucket_of_amazon_gives_hostler_to_the_pod(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sha = parcel()
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    store = f"s3://{BUCKET}/my runs/a+b"
    open_store(store).put(f"library/{sha}.zip", data)
    done = bring(store, tmp_path, f"library/{sha}.zip={sha}", **s3)
    assert done.returncode == 0, done.stdout + done.stderr


def test_silent_store_is_tried_by_another_pod(tmp_path: Path) -> None:
    gone = {**CREDENTIALS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    short = manifest.boot().replace("TRIES = 8", "TRIES = 1").replace("min(2.0**n, 15.0)", "0")
    words = [sys.executable, "-c", short, "s3://b", str(tmp_path), "library/ff.zip=ff"]
    done = subprocess.run(words, env={**os.environ, **gone}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 75 and "s3://b cannot be reached" in done.stdout


class _Breaks(BaseHTTPRequestHandler):
    """An answer that is shorter than it says."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half")

    def log_message(self, *words: object) -> None:
        pass


class _Nobody(_Breaks):
    """A metadata server that knows no account of the pod."""

    def do_GET(self) -> None:
        self.send_error(404)


class _Agent(_Breaks):
    """Of EKS: keys for who shows the pod's token."""

    def do_GET(self) -> None:
        shown = self.headers.get("Authorization") == "token of the pod"
        keys = {"AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "ST"}
        self.send_response(200 if shown else 401)
        self.end_headers()
        self.wfile.write(json.dumps(keys).encode())


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_broken_download_is_retried_and_does_not_give_place_up(tmp_path: Path) -> None:
    short = manifest.boot().replace("TRIES = 8", "TRIES = 2").replace("min(2.0**n, 15.0)", "0")
    words = [sys.executable, "-c", short, "s3://b", str(tmp_path), "library/ff.zip=ff"]
    with served(_Breaks) as url:
        variables = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": url}
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 75 and "s3://b cannot be reached" in done.stdout, done.stdout + done.stderr


def test_node_agent_gives_the_keys_of_a_service_accounts_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("token of the pod\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    with served(_Agent) as url:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/v1/credentials")
        assert boot.amazon_keys() == ("AK", "SK", "ST")


def test_bucket_with_dots_in_its_name_is_addressed_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert boot.amazon_object("s3://my.runs", "a").full_url == "https://s3.eu-west-1.amazonaws.com/my.runs/a"
    assert boot.amazon_object("s3://runs", "a").full_url == "https://runs.s3.eu-west-1.amazonaws.com/a"


def test_driver_that_does_not_run_in_the_image_is_detected(tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("obstore/__init__.py", "raise ImportError('built for another Python')")
    sha = hashlib.sha256(target.getvalue()).hexdigest()
    with GcsEmulator("b") as gcs:
        _put(gcs.environ(), f"wheels/{sha}.whl", target.getvalue())
        done = bring("gs://b", tmp_path, f"wheels/{sha}.whl={sha}", **gcs.environ())
    assert done.returncode == 2 and "no worker can use gs://b here (Python" in done.stdout
    assert "built for another Python" in done.stdout and "install obstore" in done.stdout


def test_image_without_ca_certificates_ends_the_whole_job(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sha = parcel()
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    open_store(f"s3://{BUCKET}/runs").put(f"library/{sha}.zip", data)
    bare = {"SSL_CERT_FILE": "/dev/null", "SSL_CERT_DIR": "/nonexistent", "HOSTLER_RETRY": "1"}
    done = bring(f"s3://{BUCKET}/runs", tmp_path, f"library/{sha}.zip={sha}", **s3, **bare)
    assert done.returncode == 2 and "answers, but not the worker's client" in done.stdout, done.stdout
    assert "install ca-certificates" in done.stdout


def test_store_that_nobody_may_write_ends_the_whole_job(tmp_path: Path) -> None:
    data, sha = parcel()
    (tmp_path / "store" / "library").mkdir(parents=True)
    (tmp_path / "store" / "library" / f"{sha}.zip").write_bytes(data)
    (tmp_path / "store" / "probe").write_text("a file where the worker makes a folder")
    done = bring(str(tmp_path / "store"), tmp_path, f"library/{sha}.zip={sha}")
    assert done.returncode == 2 and f"no worker can use {tmp_path}/store here" in done.stdout


def _put(variables: dict[str, str], key: str, data: bytes) -> None:
    code = (
        "import sys; from hostler.store import open_store; "
        "open_store('gs://b').put(sys.argv[1], sys.stdin.buffer.read())"
    )
    subprocess.run([sys.executable, "-c", code, key], input=data, env={**os.environ, **variables}, check=True)


@pytest.mark.parametrize(
    "form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL]
)
def test_a_key_signs_as_others_check_it(form: serialization.PrivateFormat) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    key.public_key().verify(boot.sign(pem, b"said"), b"said", padding.PKCS1v15(), hashes.SHA256())
    assert base64.urlsafe_b64decode(boot.encoded(b"x") + b"==") == b"x"


def test_a_key_file_goes_into_the_secret_as_its_text(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"type": "service_account"}))
    found = portable({"GOOGLE_APPLICATION_CREDENTIALS": str(file), "A": "b"})
    assert found == {"A": "b", "GOOGLE_SERVICE_ACCOUNT_KEY": file.read_text()}
    file.write_text(json.dumps({"type": "authorized_user"}))
    with pytest.raises(CloudError, match="a person's login"):
        portable({"GOOGLE_APPLICATION_CREDENTIALS": str(file)})
    with pytest.raises(CloudError, match="cannot be read"):
        portable({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none")})
