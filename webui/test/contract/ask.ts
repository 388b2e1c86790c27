// One request to the server, the way it stands; no cache, no redirect, nothing
// repeated.
import { Agent, request, type IncomingHttpHeaders } from 'node:http';

export interface Question {
  readonly method: string;
  /** Path and query, escaped. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const PATIENCE_MS = 120_000;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });

export function ask(base: string, question: Question): Promise<Answer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const { method, target: path, headers = {}, body } = question;
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const sent = request(
      { agent, hostname, port, method, path, headers: { ...length, ...headers } },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.once('error', reject);
        response.once('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(parts),
          });
        });
      },
    );
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error(`no answer: ${method} ${path}`)));
    sent.once('error', (error) => {
      reject(new Error(`${method} ${path}: ${error.message}`, { cause: error }));
    });
    sent.end(body);
  });
}

export function jsonOf(answer: Answer): unknown {
  return JSON.parse(answer.body.toString('utf8'));
}
