# No escape without a terminal, unless asked for.
make_store s
export LMEMO_STORE=s
run verify
run verify --color always
NO_COLOR=1 run verify --color always
NO_COLOR=1 LMEMO_COLOR=always run verify
