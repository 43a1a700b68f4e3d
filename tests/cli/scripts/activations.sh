# What is stored of hidden states.
"$TEST_PYTHON" "$TEST_HELPERS" make_activations s
export LMEMO_STORE=s
run activations show
run activations show gpt2 --json
run activations show gpt3
run activations show --quiet
run activations discover gpt2 "prompt 1"
run activations discover gpt2 "prompt 1" --json
run activations discover gpt2 "prompt 99"
run activations evict
run activations evict --to 3KiB --dry-run
run activations evict --to 8KiB --dry-run --json
run activations evict --to 8KiB
run activations evict --to 8KiB --yes --json
run activations show gpt2
run activations clear --dry-run --json
run activations clear --model gpt2 --dry-run
run activations clear --model gpt3 --yes
run activations clear
run activations clear --model gpt2 --yes
run activations show
run activations --help
# A store of its own is found under the name that Python knows.
"$TEST_PYTHON" "$TEST_HELPERS" make_activations own
export LMEMO_ACTIVATIONS_STORE=own
run activations show gpt2 --quiet
run activations clear --yes --quiet
run activations show
run activations show --store s
LMEMO_ACTIVATIONS_STORE=nowhere run activations show
