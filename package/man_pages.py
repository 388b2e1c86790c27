"""man_pages.py TT TT_SERVER COMMAND_LINE_MD OUTPUT: writes tt.1.gz and tt-server.1.gz to the folder
OUTPUT, from what `tt --help`, `tt help VERB` and `tt-server --help` print and from the rules of
docs/command-line.md."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path


def help_of(*command: str) -> str:
    # The caller's variables would be shown as defaults.
    environment = {n: v for n, v in os.environ.items() if not n.startswith("TT_")}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq").replace('"', "\\(dq")
    return "\\&" + text if text.startswith(".") else text


class Help:
    """The parts of a --help text."""

    def __init__(self, text: str) -> None:
        lines = [line.rstrip() for line in text.splitlines()]
        self.description = ""
        self.usage: list[str] = []
        self.sections: dict[str, list[tuple[str, str]]] = {}
        self.footer: list[str] = []
        section: list[tuple[str, str]] | None = None
        for line in lines:
            if self.footer or (section and line and not line.startswith(" ") and line[-1] != ":"):
                self.footer.append(line)
            elif re.match(r"tt(-server)?( |$)", line):
                self.usage.append(line)
            elif re.match(r"[A-Za-z].*:$", line) and self.usage:
                section = self.sections.setdefault(line[:-1], [])
            elif section is None:
                self.description = f"{self.description} {line}".strip()
            elif line.startswith(" " * 30):
                head, words = section[-1]
                section[-1] = (head, f"{words} {line.strip()}".strip())
            elif line:
                # "  -p,     --prompt TEXT", or with the text after at least two spaces
                names = re.sub(r"^(-\w),\s+", r"\1, ", line.strip()).replace("  (Env:", " (Env:")
                head, _, words = re.sub(r"\s{2,}", "\n", names, count=1).partition("\n")
                section.append((head, words))


def item(head: str, text: str) -> str:
    """`head` is names, type and default, then "(Env:TT_X)" and "Excludes: ..."."""
    head, excludes = (head.split(" Excludes: ") + [""])[:2]
    variable = re.search(r" \(Env:(\w+)\)", head)
    head = re.sub(r" \(Env:\w+\)|\{false\}", "", head).strip()
    text = text.rstrip(".")
    if excludes:
        text += f". Not together with {', '.join(excludes.split())}"
    if variable:
        text += f". Variable: {variable[1]}"
    return f".TP\n.B {roff(head)}\n{roff(text)}.\n"


def items(help: Help, *leave_out: str) -> str:
    out = ""
    for name, rows in help.sections.items():
        if name in leave_out:
            continue
        if name not in ("OPTIONS", "POSITIONALS"):
            out += f".PP\n.I {roff(name)}\n"
        out += "".join(item(head, text) for head, text in rows if head not in leave_out)
    return out


def footer(help: Help) -> str:
    """Examples, as they are."""
    lines = [roff(line) + "\n" for line in help.footer if line]
    return ".PP\n.nf\n" + "".join(lines) + ".fi\n"


def rules(document: str) -> str:
    """The list of the section "Rules": "- **Title.** text"."""
    section = document.split("\n## Rules\n")[1].split("\n<!--")[0].split("\n## ")[0]
    out = ".SH RULES\n"
    for bullet in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(bullet.split())).replace("`", "")
        title, words = re.match(r"(?:\*\*(.*?)\*\*)?(.*)", text).groups()
        if title:
            out += f".TP\n.B {roff(title.rstrip('.'))}\n{roff(words.strip())}\n"
        else:
            out += f".PP\n{roff(words.strip())}\n"
    return out


def page(name: str, help: Help, version: str, body: str) -> str:
    description = help.description.rstrip(".")
    return (
        f'.TH {name.upper()} 1 "" "tensor-trace {version}" "User Commands"\n.ad l\n.nh\n'
        f".SH NAME\n{roff(name)} \\- {roff(description[0].lower() + description[1:])}\n"
        ".SH SYNOPSIS\n" + "".join(f".B {roff(line)}\n.br\n" for line in help.usage) + body
    )


def verb_section(tt: str, *verb: str) -> str:
    help = Help(help_of(tt, "help", *verb))
    body = f".SS {roff(help.usage[0])}\n{roff(help.description.rstrip('.'))}.\n"
    body += items(help, "SUBCOMMANDS", "-h, --help") + footer(help)
    return body + "".join(
        verb_section(tt, *verb, part) for part, _ in help.sections.get("SUBCOMMANDS", [])
    )


def tt_page(tt: str, version: str, document: str) -> str:
    top = Help(help_of(tt, "--help"))
    body = (
        ".SH DESCRIPTION\nThe recording of one request is a session, one file. tt records and reads "
        "sessions without a server. Each verb has its own options.\n"
        ".SH OPTIONS\n" + items(top, "SUBCOMMANDS") + ".SH VERBS\n"
    )
    for verb, _ in top.sections["SUBCOMMANDS"]:
        body += verb_section(tt, verb)
    return page("tt", top, version, body + rules(document) + ".SH SEE ALSO\n.BR tt\\-server (1)\n")


def server_page(server: str, version: str) -> str:
    help = Help(help_of(server, "--help"))
    body = (
        ".SH DESCRIPTION\nThe server prints the address of its page. It listens on this machine "
        "only; with \\-\\-host it listens elsewhere and requires a key.\n.SH OPTIONS\n" + items(help)
    )
    return page("tt-server", help, version, body + ".SH SEE ALSO\n.BR tt (1)\n")


def main(tt: str, server: str, document: str, output: str) -> None:
    version = help_of(tt, "--version").split()[-1]
    pages = {
        "tt.1": tt_page(tt, version, Path(document).read_text()),
        "tt-server.1": server_page(server, version),
    }
    for name, text in pages.items():
        # Without a time, so that the same text is the same file.
        Path(output, f"{name}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
