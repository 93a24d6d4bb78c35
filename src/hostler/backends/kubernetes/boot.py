"""The boot program of a pod: brings hostler and its store's driver from the store into a folder.

    python3 -c THIS STORE FOLDER KEY=SHA256 ...

It travels as text in the Job and is run by whatever Python the image has, so it imports nothing of hostler.
Exit 2: no pod of this Job will do, and the text says why; 75: another try may.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import io
import json
import os
import platform
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from urllib.request import Request

OLDEST = (3, 10)
TRIES = 6  # of one download
UNFIT, LATER = 2, 75
GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"


class Unfit(Exception):
    """No pod of this Job will do; the text says why."""


def main(words: list[str]) -> int:
    store, folder, *parcels = words
    try:
        if sys.version_info[:2] < OLDEST:
            raise Unfit(f"the image's Python is {platform.python_version()}, hostler needs 3.10 or newer")
        places = [bring(store, folder, *parcel.split("=", 1)) for parcel in parcels]
        check(store, places)
    except Unfit as error:
        print(f"hostler: failed: {error}", flush=True)
        return UNFIT
    except OSError as error:
        print(f"hostler: {store} cannot be reached: {error}", flush=True)
        return LATER
    return 0


def bring(store: str, folder: str, key: str, sha: str) -> str:
    """Where one parcel lies: beside its place first, so that nobody finds half of it."""
    place = os.path.join(folder, key.split("/")[0], sha)
    if os.path.isdir(place):
        return place
    data = download(store, key)
    if hashlib.sha256(data).hexdigest() != sha:
        raise Unfit(f"what {store} holds of hostler is damaged ({key})")
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        packed.extractall(place + ".tmp")
    Path(place + ".tmp").rename(place)
    return place


def check(store: str, places: list[str]) -> None:
    """A driver that was built for another Python or system is found out here."""
    if "://" not in store:
        return
    words = [sys.executable, "-c", "import obstore"]
    theirs = dict(os.environ, PYTHONPATH=os.pathsep.join(places))
    done = subprocess.run(words, env=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines() or [""]
        here = f"Python {platform.python_version()} on {platform.machine()}"
        raise Unfit(
            f"the store's driver does not run in this image ({here}): {said[-1]}; "
            "pip install obstore in it, or take another"
        )


def download(store: str, key: str) -> bytes:
    if "://" not in store:
        try:
            with open(os.path.join(store, key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise Unfit(
                f"{store} has no {key} in this pod: check that the store's folder is mounted there"
            ) from None
        except PermissionError as error:
            raise Unfit(f"{store} cannot be read in this pod: {error}") from None
    scheme, _, rest = store.partition("://")
    bucket, _, prefix = rest.partition("/")
    name = "/".join(part for part in (prefix.strip("/"), key) if part)
    request = {"gs": google, "s3": amazon}.get(scheme)
    if request is None:
        return by_driver(store, key)
    return patiently(lambda: request(bucket, name), store, key)


def patiently(request: Callable[[], Request], store: str, key: str) -> bytes:
    said = ""
    for n in range(TRIES):
        try:
            with urllib.request.urlopen(request(), timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            said = f"{error.code} {error.reason}"
            if error.code in (400, 401, 403, 404):
                hint = "check that the pod's service account or Secret opens the bucket"
                raise Unfit(f"{key} cannot be read from {store}: {said}; {hint}") from None
        except (OSError, HTTPException) as error:  # or the answer broke off
            said = str(error)
        time.sleep(min(2.0**n, 15.0))
    raise OSError(said)


def by_driver(store: str, key: str) -> bytes:
    """Other buckets by the driver, if the image has it."""
    try:
        driver = import_module("obstore.store")
    except ImportError:
        raise Unfit(f"{store} is read by obstore, which is not in this image: pip install obstore") from None
    return bytes(driver.from_url(store).get(key).bytes())


def google(bucket: str, name: str) -> Request:
    base = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
    base = base if "://" in base else "http://" + base
    url = f"{base}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
    emulated = os.environ.get("STORAGE_EMULATOR_HOST") and not os.environ.get("GCE_METADATA_HOST")
    token = "emulator" if emulated else google_token()
    return Request(url, headers={"Authorization": "Bearer " + token})


def google_token() -> str:
    """Token from the key in the pod's Secret, or else from the pod's own identity."""
    key = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    if key:
        return of_key(json.loads(key))
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    asked = Request(url, headers={"Metadata-Flavor": "Google"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        return str(json.loads(answer.read())["access_token"])


def of_key(key: dict[str, str]) -> str:
    now = int(time.time())
    where = key.get("token_uri") or GOOGLE_TOKENS
    scope = "https://www.googleapis.com/auth/devstorage.read_only"
    claims = {"iss": key["client_email"], "scope": scope, "aud": where, "iat": now, "exp": now + 3600}
    head = {"alg": "RS256", "typ": "JWT", "kid": key.get("private_key_id", "")}
    said = b".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    signed = said + b"." + encoded(sign(key["private_key"], said))
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    form = urllib.parse.urlencode({"grant_type": grant, "assertion": signed.decode()}).encode()
    with urllib.request.urlopen(Request(where, form), timeout=30) as answer:
        return str(json.loads(answer.read())["access_token"])


def encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def sign(pem: str, said: bytes) -> bytes:
    """RSASSA-PKCS1-v1_5 with SHA-256: the standard library has no RSA, but a power modulo n."""
    lines = [line for line in pem.strip().splitlines() if "-----" not in line]
    n, d = private_key(base64.b64decode("".join(lines)))
    size = (n.bit_length() + 7) // 8
    prefix = bytes.fromhex("3031300d060960864801650304020105000420")
    digest = prefix + hashlib.sha256(said).digest()
    padded = b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest
    return pow(int.from_bytes(padded, "big"), d, n).to_bytes(size, "big")


def private_key(der: bytes) -> tuple[int, int]:
    """(modulus, private exponent) of a PKCS#8 or PKCS#1 key."""
    fields = sequence(der)
    if len(fields) < 6:  # PKCS#8: version, algorithm, the key itself
        fields = sequence(fields[2])
    return int.from_bytes(fields[1], "big"), int.from_bytes(fields[3], "big")


def sequence(der: bytes) -> list[bytes]:
    """The contents of what is in a DER sequence, one after the other."""
    body, _ = element(der, 0)
    found, at = [], 0
    while at < len(body):
        inner, at = element(body, at)
        found.append(inner)
    return found


def element(der: bytes, at: int) -> tuple[bytes, int]:
    """(content, where the next one begins)."""
    size, at = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, at = int.from_bytes(der[at : at + count], "big"), at + count
    return der[at : at + size], at + size


def amazon(bucket: str, name: str) -> Request:
    """A signed GET (version 4), of a bucket by its path, or of Amazon's own by its host."""
    access, secret, session = amazon_keys()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = next((os.environ[one] for one in names if os.environ.get(one)), "")
    base = endpoint.rstrip("/") or f"https://{bucket}.s3.{region}.amazonaws.com"
    if not endpoint and "." in bucket:  # Amazon's certificate is for names without dots
        base = f"https://s3.{region}.amazonaws.com/{bucket}"
    if endpoint and os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() != "true":
        base += "/" + bucket
    url = base + "/" + urllib.parse.quote(name, safe="/-_.~")
    if not access:
        return Request(url)
    parts = urllib.parse.urlsplit(url)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-date": now, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    if session:
        headers["x-amz-security-token"] = session
    listed = ";".join(sorted(headers))
    lines = ["GET", parts.path, "", *(f"{one}:{headers[one]}" for one in sorted(headers))]
    canonical = "\n".join([*lines, "", listed, "UNSIGNED-PAYLOAD"])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    whole = hashlib.sha256(canonical.encode()).hexdigest()
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, whole]).encode()
    signature = hmac.new(key, text, hashlib.sha256).hexdigest()
    who = f"Credential={access}/{scope}, SignedHeaders={listed}, Signature={signature}"
    headers["Authorization"] = f"AWS4-HMAC-SHA256 {who}"
    return Request(url, headers=headers)


def amazon_keys() -> tuple[str, str, str]:
    """(access key, secret key, session) of the pod's Secret, or of the role of its service account."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    access, secret, session = (os.environ.get(one, "") for one in names)
    file, role = os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"), os.environ.get("AWS_ROLE_ARN")
    agent = os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not access and agent and not (file and role):
        return of_agent(agent)
    if access or not file or not role:
        return access, secret, session
    with open(file) as opened:
        form = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleSessionName": "hostler"}
        form |= {"RoleArn": role, "WebIdentityToken": opened.read().strip()}
    region = os.environ.get("AWS_REGION") or "us-east-1"
    where = os.environ.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    asked = Request(where, urllib.parse.urlencode(form).encode(), {"Accept": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        told = json.loads(answer.read())["AssumeRoleWithWebIdentityResponse"]
    given = told["AssumeRoleWithWebIdentityResult"]["Credentials"]
    return given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]


def of_agent(url: str) -> tuple[str, str, str]:
    """From the agent on the node, which gives a service account the keys of its role (EKS Pod Identity)."""
    asked = Request(url)
    if file := os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        with open(file) as opened:
            asked.add_header("Authorization", opened.read().strip())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        given = json.loads(answer.read())
    return given["AccessKeyId"], given["SecretAccessKey"], given["Token"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
