# Flags, environment, lmemo.toml found upward, the user's file, defaults: each value with its origin.
run config
run config path
mkdir -p home/.config/lmemo project/deep
printf 'check = "first_find"\nmax_bytes = "1GiB"\n' > home/.config/lmemo/config.toml
printf '# ours\nstore = "cache"\nmax_bytes = "2GiB"\n\n[limits]\ntokens = 4096\n' > project/lmemo.toml
cd project/deep
run config list
run config path
run config path --quiet
LMEMO_MAX_BYTES=none NO_COLOR=1 run config list --store ~/mine
LMEMO_MAX_BYTES=lots run config list
run config get limits.tokens
run config get limits.tokens --json
run config list --json
run config --quiet
echo 'max_byte = 1' > other.toml
run config --config other.toml
run config --config missing.toml
run completions bash --config other.toml > completions.txt
LMEMO_CONFIG=other.toml run show
printf 'store = "a\n' > other.toml
run config --config other.toml
