set -eu
