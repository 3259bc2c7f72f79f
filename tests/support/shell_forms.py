"""What drawn scripts are made of: <name> stands for one of the forms of that name.

Each name has forms for every shell, for bash, and, behind `hidden`, for what only a real shell
knows. «a¦b» stands for one of the strings between bars.
"""

from collections.abc import Mapping

NAMES = ("A", "B", "TP", "PP")
"""Variables; TP and PP are in the container's env."""
HIDDEN = "U"
"""A variable of which only the real shell knows the value."""
LATE = "WORKER_INDEX"
"""A variable that each pod has its own value for."""
TEXTS = (
    *("1", "2", "4", "8", "16", "M", "--seed", "x y", "a  b", "", "it's", "a*b", "a/b/c.d", "k=v"),
    *("-x", "$A", "a,b,c", "{p,q}", "~", "#no", "a\\b", "é", "x\u3000y", "{\U00031860,z}"),
)
PLAIN = ("1", "2", "4", "8", "16", "M", "--seed", "-x", "a/b.c", "k=v", "a,b", "é=\U00031860")
DIGIT = tuple("0123456789")

FORMS: Mapping[str, tuple[str, ...]] = {
    "array": ("ARGS", "L"),
    "called": ("f", "g", "start_it"),
    "digit": DIGIT,
    "name": NAMES,
    "one": tuple("123456789"),
    "plain": PLAIN,
    "word": (
        *("<literal>", "<literal>", "<literal>", "$<name>", '"$<name>"', '"${<name>}"'),
        *("${<name>:-<literal>}", '"${<name>:-<plain>}"', "${<name>«-¦+¦:+»<literal>}"),
        *('"<plain>$<name>-x"', "$(echo <word>)", '"$(echo <word> <word>)"', "`echo <plain>`"),
        *("$((<digit> «+¦*¦-¦<¦==¦&&» <one>))", "$(( (<digit> + 3) «/¦%¦*» <one> ))"),
        *("$(printf '%s' <word>)", "${<name>«%¦%%¦#¦##»«*¦a¦*/¦.*¦[0-9]¦x*»}"),
        *("$1", '"$1"', '"$@"', "$@", '"$*"', "$#", '"${2:-z}"', "$0", "$?"),
        *('$(dirname "/a/b c/d")', "$(seq 2 3)"),
        *('"${<name>«:-¦-¦:+¦+»}"', '"${<name>«:+¦+»<plain>}"', '"${*:+x}"'),
    ),
    "word bash": (
        *('"${ARGS[@]}"', "${ARGS[@]}", '"${ARGS[*]}"', '"${L[@]}"', "${#ARGS[@]}", '"${ARGS[0]}"'),
        *("${ARGS[1]:-d}", '"${ARGS[@]:-x}"'),
        *('"${ARGS[«@¦*»]«:-¦:+¦+»«¦x»}"', '"${L[@]+"${L[@]}"}"'),
        *("{1,2}", "a{b,c}d", "{1..3}", "--x{1,2}=y", "{a", "{}", "{a}"),
        *("$((«TP¦PP¦A» «*¦+¦-¦%» 2))", '"$(( 07 + 0x1F ))"'),
    ),
    "word hidden": (
        *("$U", '"$U"', "x$U", '"${U:-1}"', "$WORKER_INDEX", "$(probe)", '"$(probe)"', "`probe`"),
        *("${#<name>}", "$(basename /a/b.c)", "$(printf '%«d¦3s¦-3s¦x»' <word>)"),
        *("${!N}", '"${<name>«:+¦:-»<word>}"', '"${@«:-¦:+¦+»«¦x»}"', '"$<name>$@"'),
    ),
    "word bash hidden": (
        *("${<name>«##¦%%¦/»«+([0-9])¦@(M|a)¦!(x)»}", '"${L[a]}"', "${<name>@Q}", "${!ARGS[@]}"),
        *("${<name>«//a/b¦/x/¦/#a/z¦^^¦,,¦:0:1¦:1¦: -1»}", '"${<name>«//,/ ¦/a*/q¦^¦/%y/z»}"'),
        *('"${ARGS[@]:1}"', '"${L[@]/#/-}"', '"${L[@]%x}"', "${<name>:A++}", "${<name>/x/${B:=3}}"),
        *("$((«TP¦PP¦A» «**¦<<¦&¦^» 2))", "$((TP | 2))", "$((${#TP}>2?1:3))", "$((2#11))"),
        *("$(( A++ ? (B=2) : TP ))", "$'a\\x41'", '"$<name>${L[@]}"'),
    ),
    "words": ("", "<word>", "<word> <word>", "<word> <word> <word>"),
    "start": (
        "vllm serve <words> -tp <word> <words>",
        "vllm serve <words> -tp <word>",
        "vllm serve <words> -tp <plain>\\\n<plain> \\\n  <word>",
        "python3 -m vllm.entrypoints.openai.api_server -tp <word>",
    ),
    "engine": (
        *("<start>",) * 8,
        *("exec <start>", "command <start>", "nohup <start>", "timeout 9 <start>", "time <start>"),
        *("env A=1 <start>", "A=9 <start>", "TP=3 PP=5 <start>", "! <start>", "<start> | cat"),
        *("<start> &", "<start> &\nwait", "(<start>)", "{ <start>; }", "<start> > /dev/null 2>&1"),
        *("bash -c <quoted start> x 7", "<name>=<plain> bash -c <quoted start>"),
        *("env <name>=<plain> bash -c <quoted start> y a b", "bash <file start> 3"),
        *("bash -s -- q r <<'END'\n<start>\nEND", "cat <<'END' | bash\n<start>\nEND"),
        "cd <folder> && ./<script start> 5 6",
        "<start>« ¦¦ 2¦-2¦ -2¦ -o2¦2¦ x2¦ 12»«>¦>>¦>|¦>&1¦>&2¦&>»«¦/dev/null¦ /dev/null» <words>",
        "<start> «12>¦&>¦&>>» /dev/null",
    ),
    "condition": (
        *('[ "$<name>" = <plain> ]', '[ "$<name>" «-gt¦-eq¦-le» <digit> ]'),
        '[ «-n¦-z» "$<name>" ]',
        '[ «! ¦»"$<name>" != <literal> ]',
        *("true", "false", ":", "[ $# -gt 1 ]", "! false"),
    ),
    "condition bash": (
        *('[[ $<name> == «*¦[0-9]¦a*¦?¦8¦"M"» ]]', "[[ -n $<name> && $<name> -ge <digit> ]]"),
        *("(( «TP¦PP¦3» «>¦==¦%» <one> ))", "[[ $<name> =~ ^[0-9]+$ ]]"),
        "[[ ! ( -z $<name> || $<name> != 1 ) ]]",
    ),
    "condition hidden": (
        *("check", "! check", "check && check", '[ "$U" = 1 ]', '[ -n "$U" ]', "[ -f /no/such ]"),
        'test -n "$<name>" «-a¦-o» 1 = «0¦1¦2»',
        *('[ "$WORKER_INDEX" = 0 ]', '[ "$WORKER_INDEX" -gt 0 ]', "[[ ! ( -z $A || $U != 1 ) ]]"),
    ),
    "assigned": ("<name>=<word>",),
    "simple": (
        *("<assigned>", "<assigned>", "export <name>=<literal> <name>", "<assigned> <assigned>"),
        *("unset <name>", "set -- <words>", "shift", "shift 2", "set «-f¦+f¦-e¦-u¦-a¦+a»"),
        *("echo <words> vllm serve M -tp 4", "<condition> «&&¦||» <assigned>", "IFS=,"),
        *("eval <quoted assigned>", 'eval "<name>=$<name>"', "export $(echo <name>=<plain>)"),
        *(": ${<name>:=<literal>}", "<called> <words>", ". <file assigned>", "(<assigned>)"),
        "IFS=«,¦:¦' '» read -r A B <<END\n«1,2¦x:y:z¦ 4  8 ¦q»\nEND",
        *("<assigned> | cat", "cd /tmp", "unset IFS", "wait", "trap 'B=1' EXIT"),
        *("# don't <word>\n", 'trap "kill $<name>" TERM'),
        *("export <assigned> <assigned>", "<name>=$(false; echo <word>)"),
        "set -e; <condition> || <assigned>",
        "<name>=$(<condition> && echo <word> || echo <word>)",
    ),
    "simple bash": (
        *("<array>«=¦+=»(<words>)",) * 2,
        *("ARGS[«0¦1¦$A¦7»]=<word>", "<name>+=<word>", "source <file assigned>"),
        *('N=<name>; read "$N" <<< <word>', "(( «A=PP*2¦TP+=1¦A++¦B = TP > 2» ))"),
        *("declare <assigned> <assigned>", "<name>=${ARGS[-1]:-<plain>}"),
        *("declare «¦-x ¦-r »<assigned>", "read -r A B <<< <word>", "read -ra ARGS <<< <word>"),
    ),
    "simple hidden": (
        *("check «&&¦||» <assigned>", "check «&&¦||» «exit 7¦true»", "<engine>", "<engine>"),
        *("check «&&¦||» <start>", "trap 'A=9' TERM", "check", ". /no/such", "N=<name>"),
        *('«read¦read -r» "ARGS[«0¦1»]" <<< <word>', 'declare "ARGS[«0¦1»]=<plain>"'),
        *("time <assigned>", ". <file assigned> <words>"),
    ),
    "simple bash hidden": (
        *("declare -«i¦u¦l¦g» <assigned>", "mapfile -t ARGS <<< <word>", "shopt -«s¦u» extglob"),
        *("printf -v<name> %s <word>", "printf -v <name> «%s¦%d¦'<%s>'¦%s-%s» <words>"),
        *('let «A=TP+1¦"B = 3"¦A++¦TP*=2»', "(( «B = TP > 2 ? 1 : 0¦A<<=2¦B**2» ))"),
        *('ARGS=(<words>); <array>=("${ARGS[@]:1}" <word>)', "shopt -u extglob"),
        *('unset "ARGS[«0¦1»]"', "ARGS=([2]=<plain> <plain>)"),
        "declare -A L=([a]=<word> [b]=<word>)",
        "[[ $<name> =~ ([0-9]+)(.*) ]] && <name>=${BASH_REMATCH[«1¦2»]}",
    ),
    "elif": ("elif <condition>; then\n<body>",),
    "else": ("", "", "else\n<body>", "<elif>", "<elif>else\n<body>"),
    "item": ('  «a*¦[0-9]¦8|4¦*¦"*"¦?¦M») <statement>\n  ;;\n',),
    "item bash": ('  «a*¦[0-9]¦8|4¦*¦"*"¦?¦M») <statement>\n  «;&¦;;&»\n',),
    "left": ("", "", "continue\n", "break\n", "<condition> && break\n"),
    "returned": ("", "", "return\n", "<condition> && return\n", "<condition> || return 1\n"),
    "compound": (
        *("if <condition>; then\n<body><else>fi",) * 2,
        *("case <word> in\n<item>  z) :;;\nesac", "case <word> in\n<item><item>  z) :;;\nesac"),
        'for <name> in «<word>¦1 2¦"$@"¦$(echo 4 8)¦<word> <word>»; do\n<body><left>done',
        "I=0\nwhile [ $I -lt «0¦1¦3» ]; do\nI=$((I+1))\n<name>=$I\n<body>done",
        *("while true; do\n<body>break\ndone", "until true; do sleep 0; done"),
        "while <condition>; do <assigned>\nbreak\ndone",
        *("<called>() {\n<body><returned><body>}", "<called>() {\nlocal <assigned>\n<body>}"),
        "<called>() {\nlocal <assigned> <assigned>\n<body>}",
        *("if false; then <engine>\nfi", "(\n<body>)"),
        *("{\n<body>}", "{\n<body>} | cat", "{\n<body>} &"),
        *("cat <<END > /dev/null\n<start> $<name>\nEND", "cat <<'END' > /dev/null\n<start>\nEND"),
        *("A=$(\n<body>)", "if <condition>; then exit «7¦0»; fi"),
        "if <condition>; then exec «true¦vllm serve M -tp 2»; fi",
    ),
    "compound bash": (
        "for ((I=0; I<«0¦1¦2»; I++)); do\n<body>done",
        "function <called> {\n<body>}",
        "while read -r A; do\n<body>done <<< <word>",
    ),
}  # fmt: skip
