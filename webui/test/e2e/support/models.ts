// Models for the browser tests, created by the `tt` in the folder of the server's program, and a
// model without a vocabulary.
import { execFile } from 'node:child_process';
import { glob, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

// A small model of a named shape (`tt model --list`) with random weights.
export async function makeModel(
  folder: string,
  shape: string,
  sizes: readonly string[] = ['--layers', '2'],
): Promise<string> {
  const program = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
  const file = join(folder, `${shape}.gguf`);
  await promisify(execFile)(program, ['model', shape, ...sizes, '-q', '-o', file]);
  return file;
}

// The same model with other types, by llama-quantize. Returns the file.
export async function quantize(from: string, to: string, type: string): Promise<string> {
  await promisify(execFile)('llama-quantize', ['--pure', '--allow-requantize', from, to, type]);
  return to;
}

// How large the inputs of the weights of a model are, by llama-imatrix.
export async function observe(model: string, to: string): Promise<void> {
  const text = `${to}.txt`;
  await writeFile(text, Array.from({ length: 200 }, (_, i) => `Once upon a time ${i}, and the sea.`).join(' ')); // prettier-ignore
  await promisify(execFile)('llama-imatrix', ['-m', model, '-f', text, '-t', '1', '-c', '64', '--chunks', '2', '--output-format', 'gguf', '-o', to]); // prettier-ignore
}

// A small model of an architecture that `tt model` has no shape of, without a vocabulary: written by the
// program of llama.cpp's tests. TT_LLAMA_ARCHS: where it is.
export async function makeArchModel(folder: string, arch: string): Promise<string> {
  const program = process.env.TT_LLAMA_ARCHS ?? (await installedArchs());
  await promisify(execFile)(program, ['-a', `^${arch}$`, '-o', folder]);
  return join(folder, `${arch}-dense.gguf`);
}

async function installedArchs(): Promise<string> {
  for await (const program of glob('/usr/libexec/*/llama.cpp-tests/test-llama-archs'))
    return program;
  throw new Error('test-llama-archs of llama.cpp-tests (docker/packages.txt) is not installed');
}

const BUNDLED = new URL('../../../../tracer/modelgen/bundled/pocket.gguf', import.meta.url);

export async function makeModelWithoutVocabulary(folder: string): Promise<string> {
  const file = join(folder, 'bare.gguf');
  await writeFile(file, withoutVocabulary(await readFile(BUNDLED)));
  return file;
}

const ALIGNMENT = 32;
const STRING = 8;
const ARRAY = 9;
const SIZES: Readonly<Record<number, number>> = {
  0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8,
}; // prettier-ignore

// GGUF layout: magic, version, counts, metadata, tensor infos, padding, data. Only the metadata
// changes; tensor offsets are relative to the data.
function withoutVocabulary(file: Buffer): Buffer {
  let at = 8;
  const count = (): number => {
    at += 8;
    return Number(file.readBigUInt64LE(at - 8));
  };
  const text = (): string => {
    const length = count();
    at += length;
    return file.toString('utf8', at - length, at);
  };
  const skip = (type: number): void => {
    if (type === STRING) text();
    else if (type === ARRAY) {
      const of = file.readUInt32LE(at);
      at += 4;
      for (let left = count(); left > 0; left -= 1) skip(of);
    } else at += SIZES[type] ?? 0;
  };
  const tensors = count();
  const kept: Buffer[] = [];
  for (let left = count(); left > 0; left -= 1) {
    const begin = at;
    const key = text();
    const type = file.readUInt32LE(at);
    at += 4;
    skip(type);
    if (!key.startsWith('tokenizer.')) kept.push(file.subarray(begin, at));
  }
  const described = at;
  for (let left = tensors; left > 0; left -= 1) {
    text();
    at += 4 + 8 * file.readUInt32LE(at) + 4 + 8;
  }
  kept.push(Buffer.concat([string('tokenizer.ggml.model'), number32(STRING), string('no_vocab')]));
  const head = Buffer.concat([
    file.subarray(0, 8),
    number64(tensors),
    number64(kept.length),
    ...kept,
    file.subarray(described, at),
  ]);
  const padding = (ALIGNMENT - (head.length % ALIGNMENT)) % ALIGNMENT;
  const data = Math.ceil(at / ALIGNMENT) * ALIGNMENT;
  return Buffer.concat([head, Buffer.alloc(padding), file.subarray(data)]);
}

function number64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

const string = (text: string): Buffer => Buffer.concat([number64(text.length), Buffer.from(text)]);
