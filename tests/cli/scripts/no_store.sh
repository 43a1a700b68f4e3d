# A store that is not there is named, with the reason why this one was looked for; none is made.
run show
run verify --store elsewhere
LMEMO_STORE=there run clear --yes
run compact --json --store elsewhere
ls
