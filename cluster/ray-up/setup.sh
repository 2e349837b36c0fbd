#!/usr/bin/env bash
# Makes an Ubuntu machine a node: mounts the shared home (NFS source: $1), installs the package from ~/wheel, and sets
# what Ray and drivers need in every shell. Ray runs it again whenever the cluster file has changed.
set -euo pipefail

sudo apt-get update -qq
sudo apt-get install -qq --yes nfs-common python3-pip
sudo mkdir -p /study
mountpoint -q /study || sudo mount -t nfs -o hard,timeo=600,retrans=2,noresvport "$1" /study
sudo install -d -o "$USER" /study/home /study/data

python3 -m pip install --quiet --user uv
~/.local/bin/uv venv --quiet --allow-existing --python 3.12 ~/env
~/.local/bin/uv pip install --quiet --python ~/env ~/wheel/*.whl

chmod 600 ~/.ray/auth_token
cat > ~/node.env <<'END'
export PATH="$HOME/env/bin:$PATH" RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$HOME/.ray/auth_token"
export RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=1 RAY_ENABLE_UV_RUN_RUNTIME_ENV=0 RAY_USAGE_STATS_ENABLED=0
export RAY_JOB_STOP_WAIT_TIME_S=60 STUDY_HOME=/study/home STUDY_DATA=/study/data
END
grep -q node.env ~/.bashrc || sed -i '1i . ~/node.env' ~/.bashrc # first: what follows may return early
