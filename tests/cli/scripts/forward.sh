# What a trace tells, and what is stored of scoring calls.
"$TEST_PYTHON" "$TEST_HELPERS" make_forward s
cat > trace.jsonl <<'T'
{"ts": 10.0, "probe": "delta_kl", "view_id": "base", "prompt_hash": "aaaaaaaaaaaaaaaa", "top_k": 256, "op": "next_token_dist", "wall_ms": 40.0, "hit": false}
{"ts": 10.5, "probe": "delta_kl", "view_id": "ft", "prompt_hash": "aaaaaaaaaaaaaaaa", "top_k": 256, "op": "next_token_dist", "wall_ms": 60.0, "hit": false}
{"ts": 11.0, "probe": "collapse", "view_id": "base", "prompt_hash": "aaaaaaaaaaaaaaaa", "top_k": 256, "op": "next_token_dist", "wall_ms": 0.001, "hit": true}
{"ts": 11.5, "probe": "collapse", "view_id": "base", "prompt_hash": "bbbbbbbbbbbbbbbb", "top_k": 0, "op": "rolling_logprob", "wall_ms": 100.0, "hit": false}
{"ts": 11.6, "probe": null, "view_id": "ft", "prompt_hash": "aaaaaaaaaaaaaaaa", "top_k": 256, "op": "next_token_dist", "wall_ms": 0.5, "hit": true, "waited": true}
{"ts": 11.7, "probe": null, "view_id": "ft", "prompt_hash": "cccccccccccccccc", "top_k": 256, "op": "next_token_dist", "wall_ms": 5.0, "hit": false, "error": "OutOfMemoryError"}
{"ts": 11.8, "probe": nu
T
run forward trace trace.jsonl
run forward trace trace.jsonl --slowest 1 --json
run forward trace trace.jsonl --quiet --slowest 2
: > empty.jsonl
run forward trace empty.jsonl
run forward trace missing.jsonl
run forward trace
run forward
run forward --help
export LMEMO_STORE=s
run forward show
run forward show --model gpt2 --json
run forward show --quiet --op rolling_logprob
run forward clear --adapter runs/7 --dry-run
run forward clear
run forward clear --adapter runs/7 --yes
run forward show
run forward clear --yes --json
run show
