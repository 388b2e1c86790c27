// What does a grammar cost per token, beside llama-completion in the same run? The time for choosing
// a token, with everything that belongs to it: logits, samplers, grammar. Budget: at most 2 times
// that of llama-completion, for three grammars and vocabularies of 32,000 and 150,000 tokens.
//
// Both generate the same tokens, with the same model, prompt, seed and settings. Ours: the sum of
// sample_ns over the steps of a recorded session. Theirs: "sampling time" of its summary. Each round
// runs both one after the other, in alternating order; printed are medians in milliseconds per token.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine, median, options, program } from './harness.mjs';

const o = options({ theirs: 'llama-completion', rounds: 3, tokens: 200, threads: 1 });

const GRAMMARS = {
  none: '',
  list: 'root ::= ("- " [a-z ]+ "\\n")+',
  json: String.raw`
root   ::= (value "\n")+
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
array  ::= "[" (value ("," value)*)? "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)?`,
  deep: String.raw`
root  ::= (decl)+
decl  ::= type " " name "(" (type " " name ("," type " " name)*)? "){" stmt* "}\n"
type  ::= "int" | "float" | "char"
stmt  ::= type " " name "=" expr ";" | name "=" expr ";" | "return " expr ";" | "while(" cond "){" stmt* "}" | "if(" cond "){" stmt* "}" ("else{" stmt* "}")?
cond  ::= expr ("<" | ">" | "==" | "!=") expr
expr  ::= term (("+" | "-") term)*
term  ::= unary (("*" | "/") unary)*
unary ::= "-"? atom
atom  ::= name | [0-9]+ | name "(" (expr ("," expr)*)? ")" | "(" expr ")"
name  ::= [a-z] [a-z0-9]{0,9}`,
};
const settings = ['-p', 'json', '-n', `${o.tokens}`, '-t', `${o.threads}`, '-s', '3', '--temp', '0.8'];

const folder = mkdtempSync(join(tmpdir(), 'tt-bench-grammar-'));
const session = join(folder, 's.ttrace');

function model(vocab) {
  const file = join(tmpdir(), `tt-bench-small-${vocab}.gguf`);
  if (!existsSync(file)) execFileSync(program('tt'), ['model', 'small', '--vocab', `${vocab}`, '-q', '-o', file]);
  return file;
}

function ours(file, grammar) {
  execFileSync(program('tt'), [
    'record', '-m', file, ...settings, ...(grammar === '' ? [] : ['--grammar', grammar]), '-c', '2048',
    '-o', session, '--force', '-q',
  ], { stdio: ['ignore', 'ignore', 'inherit'] });
  const { rows: [[ms, n]] } = JSON.parse(execFileSync(program('tt'), [
    'sql', session, '--json', "SELECT sum(sample_ns) / 1e6, count(*) FROM step WHERE phase = 'generate'",
  ], { encoding: 'utf8' }));
  return { ms: ms / n, tokens: n };
}

function theirs(file, grammar) {
  const { stderr, stdout } = spawnSync(o.theirs, [
    '-m', file, ...settings, ...(grammar === '' ? [] : ['--grammar', grammar]), '-c', '2048', '-no-cnv', '-ngl', '0',
    '--perf',
  ], { input: '', encoding: 'utf8', maxBuffer: 1 << 28 });
  const all = stderr + stdout;
  const ms = Number(/sampling time =\s*([\d.]+) ms/.exec(all)?.[1]);
  const tokens = Number(/eval time =.*\/\s*(\d+) runs/.exec(all)?.[1]) + 1;
  if (!(ms > 0 && tokens > 0)) throw new Error(`${o.theirs} prints no sampling time: ${all.slice(-2000)}`);
  return { ms: ms / tokens, tokens };
}

console.log(`${machine()}; small, ${o.threads} threads, ${o.tokens} tokens, ${o.rounds} rounds`);
console.log('vocabulary  grammar   ours ms  theirs ms  ratio  tokens');
let worst = 0;
for (const vocab of [32_000, 150_000]) {
  for (const [name, grammar] of Object.entries(GRAMMARS)) {
    const figures = { ours: [], theirs: [] };
    let tokens = 0;
    for (let round = 0; round < o.rounds; ++round) {
      for (const who of round % 2 ? ['theirs', 'ours'] : ['ours', 'theirs']) {
        const figure = (who === 'ours' ? ours : theirs)(model(vocab), grammar);
        figures[who].push(figure.ms);
        tokens = figure.tokens;
      }
    }
    const [a, b] = [median(figures.ours), median(figures.theirs)];
    worst = Math.max(worst, a / b);
    console.log(
      `${String(vocab).padStart(10)}  ${name.padEnd(8)} ${a.toFixed(3).padStart(8)} ${b.toFixed(3).padStart(10)} ` +
        `${(a / b).toFixed(2).padStart(6)} ${String(tokens).padStart(7)}`,
    );
  }
}
rmSync(folder, { recursive: true });
console.log(`worst ratio ${worst.toFixed(2)}; budget 2`);
process.exitCode = worst > 2 ? 1 : 0;
