# Without a terminal: refused without --yes; --dry-run only looks.
make_store s
export LMEMO_STORE=s
run clear
run clear --dry-run
run clear --dry-run --json
run clear --dry-run --quiet --kind forward
run prune --older-than 1h --dry-run
run prune --older-than 1h --yes
run evict --to 1MiB --yes
run evict --to 1500B --dry-run --json
run clear --kind tokens --yes
run clear --kind tokens --yes
run clear --yes --json
run compact
run compact --json
run show -q
