# Runs wgconv for action.yml: writes records, a JUnit file and the job's summary, and exits as wgconv does.
set -euo pipefail
wgconv() { deno run -A --quiet "$GITHUB_ACTION_PATH/main.ts" "$@"; }

# macOS's bash, 3.2, has no mapfile, and takes an empty array for one that is not set.
words=()
while IFS= read -r word; do words+=("$word"); done < <(xargs -n 1 printf '%s\n' <<<"$COMMAND")
command=${words[0]-}
options=("${words[@]:1}")
mkdir -p "$RESULTS"
records=$RESULTS/$command.jsonl
junit=

case $command in
  check)
    junit=$RESULTS/check.xml
    options+=(--junit "$junit" --save-failures "$RESULTS/failed")
    ;;
  bench) ;;
  verify)
    # A result that is judged adds its record to a file.
    rm -f "$records"
    ;;
  *)
    echo "wgconv: Cannot run \"$command\": the action runs check, verify and bench" >&2
    exit 2
    ;;
esac
[[ $command == verify ]] || options+=(--force)

code=0
wgconv "$command" ${options[@]+"${options[@]}"} --jsonl "$records" || code=$?
{
  echo "records=$records"
  echo "junit=$junit"
} >>"$GITHUB_OUTPUT"
[[ -s $records ]] || exit "$code"
{
  echo "### wgconv $COMMAND"
  wgconv report "$records" --format markdown
} >>"$GITHUB_STEP_SUMMARY" || true
[[ $code == 0 && $BASELINE != "" ]] || exit "$code"

wgconv compare "$BASELINE" "$records" --threshold "$THRESHOLD" --markdown >"$RESULTS/compare.md" || code=$?
cat "$RESULTS/compare.md"
cat "$RESULTS/compare.md" >>"$GITHUB_STEP_SUMMARY"
exit "$code"
