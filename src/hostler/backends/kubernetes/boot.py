"""The boot program of a pod: brings hostler and its store's driver from the store, and tries the store.

    python3 -c THIS STORE FOLDER KEY=SHA256 ...

It travels as one text (`remote/standalone.py`) in the Job and is run by whatever Python the image has.
Exit 2: no pod of this Job will do, and the text says why; 75: another try may.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import os
import platform
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request

from hostler.backends.fetch import fetch, fetch_bytecode, fetch_object, google_object
from hostler.backends.kubernetes.earlier_pods import note_ends
from hostler.backends.metadata import get_token
from hostler.backends.store_check import check_store
from hostler.env import gcs_emulator, metadata_server
from hostler.errors import HostlerError, MachineError
from hostler.remote.install import install

OLDEST = (3, 10)
UNFIT, LATER = 2, 75
GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"


def main(words: list[str]) -> int:
    store, folder, *parcels = words
    try:
        if sys.version_info[:2] < OLDEST:
            raise MachineError(
                f"the image's Python is {platform.python_version()}, hostler needs 3.10 or newer"
            )
        places = [bring(store, folder, *parcel.split("=", 1)) for parcel in parcels]
        check_store(store, places, lambda: download(store, parcels[0].split("=", 1)[0]))
        note_ends(folder)
    except HostlerError as error:
        print(f"hostler: failed: {error}", flush=True)
        return UNFIT
    except OSError as error:
        print(f"hostler: {error}", flush=True)
        return LATER
    return 0


def bring(store: str, folder: str, key: str, sha: str) -> str:
    place = Path(folder, key.split("/")[0])
    place.mkdir(parents=True, exist_ok=True)
    get = partial(download, store)
    return install(place, sha, partial(get, key), partial(fetch_bytecode, get, key))


def download(store: str, key: str) -> bytes:
    if "://" not in store:
        try:
            with open(os.path.join(store, key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise MachineError(
                f"{store} has no {key} in this pod: check that the store's folder is mounted there"
            ) from None
        except PermissionError as error:
            raise MachineError(f"{store} cannot be read in this pod: {error}") from None
    if store.startswith("gs://"):
        return fetch_object(lambda: google_object(store, key, google_token()), store, key)
    if store.startswith("s3://"):
        return fetch_object(lambda: amazon_object(store, key), store, key)
    return by_driver(store, key)


def by_driver(store: str, key: str) -> bytes:
    """Other buckets by the driver, if the image has it."""
    try:
        driver = import_module("obstore.store")
    except ImportError:
        raise MachineError(
            f"{store} is read by obstore, which is not in this image: pip install obstore"
        ) from None
    return bytes(driver.from_url(store).get(key).bytes())


def google_token() -> str:
    """Token from the key in the pod's Secret, or else from the pod's own identity."""
    if gcs_emulator() and not metadata_server():
        return "emulator"
    key = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    return of_key(json.loads(key)) if key else get_token()


def of_key(key: dict[str, str]) -> str:
    now = int(time.time())
    where = key.get("token_uri") or GOOGLE_TOKENS
    scope = "https://www.googleapis.com/auth/devstorage.read_only"
    claims = {"iss": key["client_email"], "scope": scope, "aud": where, "iat": now, "exp": now + 3600}
    head = {"alg": "RS256", "typ": "JWT", "kid": key.get("private_key_id", "")}
    said = b".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    signed = said + b"." + encoded(sign(key["private_key"], said))
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    form = urlencode({"grant_type": grant, "assertion": signed.decode()}).encode()
    return str(json.loads(fetch(Request(where, form)))["access_token"])


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


def amazon_object(store: str, key: str) -> Request:
    """A signed GET (version 4), of a bucket by its path, or of Amazon's own by its host."""
    bucket, _, prefix = store[len("s3://") :].partition("/")
    name = "/".join(part for part in (prefix.strip("/"), key) if part)
    access, secret, session = amazon_keys()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = next((os.environ[one] for one in names if os.environ.get(one)), "")
    base = endpoint.rstrip("/") or f"https://{bucket}.s3.{region}.amazonaws.com"
    if not endpoint and "." in bucket:  # Amazon's certificate is for names without dots
        base = f"https://s3.{region}.amazonaws.com/{bucket}"
    if endpoint and os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() != "true":
        base += "/" + bucket
    url = base + "/" + quote(name, safe="/-_.~")
    if not access:
        return Request(url)
    parts = urlsplit(url)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-date": now, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    if session:
        headers["x-amz-security-token"] = session
    listed = ";".join(sorted(headers))
    lines = ["GET", parts.path, "", *(f"{header}:{headers[header]}" for header in sorted(headers))]
    canonical = "\n".join([*lines, "", listed, "UNSIGNED-PAYLOAD"])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    whole = hashlib.sha256(canonical.encode()).hexdigest()
    signing = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, whole]).encode()
    signature = hmac.new(signing, text, hashlib.sha256).hexdigest()
    who = f"Credential={access}/{scope}, SignedHeaders={listed}, Signature={signature}"
    headers["Authorization"] = f"AWS4-HMAC-SHA256 {who}"
    return Request(url, headers=headers)


def amazon_keys() -> tuple[str, str, str]:
    """(access key, secret key, session) of the pod's Secret, or of the role of its service account."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    access, secret, session = (os.environ.get(name, "") for name in names)
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
    asked = Request(where, urlencode(form).encode(), {"Accept": "application/json"})
    assume_role_with_web_identity_response = json.loads(fetch(asked))["AssumeRoleWithWebIdentityResponse"]
    credentials = assume_role_with_web_identity_response["AssumeRoleWithWebIdentityResult"]["Credentials"]
    return credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]


def of_agent(url: str) -> tuple[str, str, str]:
    """From the agent on the node, which gives a service account the keys of its role (EKS Pod Identity)."""
    asked = Request(url)
    file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    if file:
        with open(file) as opened:
            asked.add_header("Authorization", opened.read().strip())
    given = json.loads(fetch(asked, proxies=False))
    return given["AccessKeyId"], given["SecretAccessKey"], given["Token"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
