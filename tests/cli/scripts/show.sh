make_store s
export LMEMO_STORE=s
run show
run show --kind tokens
run show --kind token
run show --entries 2
run show --json --entries 1
run show --quiet --kind tokens | sort
