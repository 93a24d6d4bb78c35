#!/usr/bin/env bash
# Installs the Debian packages of packages.txt that are missing, where that is possible, after saying which.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

missing=()
while read -r package command; do
    [[ $package == "" || $package == \#* ]] && continue
    command -v "$command" >/dev/null || compgen -G "$command" >/dev/null || missing+=("$package")
done <packages.txt
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "installing the Debian packages that tests need: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "not installed, so the tests that need them are skipped: ${missing[*]}"
fi
