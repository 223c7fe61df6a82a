#!/usr/bin/env bash
# The step of action.yml: gets a stillcore, compares, shows the summary, and ends as
# `stillcore compare` does. Inputs come as variables, so that none of them is taken for shell code.
set -eu -o pipefail

program=${PROGRAM:-}
if [ -z "$program" ]; then
    folder=${RUNNER_TEMP:?}/stillcore
    mkdir -p "$folder"
    name=stillcore-$VERSION-$(uname -m)-linux
    site=${GITHUB_SERVER_URL:?}/${REPOSITORY:?}/releases/download/v$VERSION
    curl --fail --silent --show-error --location --remote-name-all --output-dir "$folder" "$site/$name.tar.gz" "$site/SHA256SUMS"
    (cd "$folder" && sha256sum --check --ignore-missing --strict SHA256SUMS && tar -xzf "$name.tar.gz")
    program=$folder/$name/stillcore
fi

conditions=()
while IFS= read -r line; do
    [ -z "${line// /}" ] || conditions+=(--fail-if "$line")
done <<<"$FAIL_IF"
# Patterns are expanded here, and words end at spaces.
# shellcheck disable=SC2206
base=($BASE) other=($OTHER) more=(${ARGUMENTS:-})

summary=${RUNNER_TEMP:?}/stillcore-compare.md
rm -f "$summary"
status=0
"$program" compare "${base[@]}" --with "${other[@]}" "${conditions[@]}" "${more[@]}" --markdown "$summary" || status=$?
if [ -e "$summary" ]; then
    cat "$summary" >>"${GITHUB_STEP_SUMMARY:?}"
    echo "summary=$summary" >>"${GITHUB_OUTPUT:?}"
fi
exit "$status"
