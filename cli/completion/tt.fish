# Fish completion for tt. Gets verbs, options and option values from the program itself, so that
# they cannot differ from it.
function __tt_words
    set -l typed (commandline -opc)
    set -l program $typed[1]
    set -l verbs  # the verb, its part (gguf reorder) and other arguments
    for word in $typed[2..]
        if not string match -q -- '-*' $word; and test $word != help
            set -a verbs $word
        end
    end
    set -l before $typed[-1]
    set -l found
    if string match -q -- '-*' $before
        set found (TT_COMPLETE=values $program $verbs $before 2>/dev/null)
    end
    if test (count $found) -gt 0
        printf '%s\n' $found
    else if string match -q -- '-*' (commandline -ct)
        TT_COMPLETE=options $program $verbs 2>/dev/null
    else if test (count $verbs) -eq 0
        echo help
        TT_COMPLETE=verbs $program 2>/dev/null
    else
        TT_COMPLETE=verbs $program $verbs 2>/dev/null
        __fish_complete_path (commandline -ct)
    end
end
complete -c tt -f -a '(__tt_words)'
