// Sends one HTTP request, without cache, redirects or retries.
import { Agent, request, type IncomingHttpHeaders } from 'node:http';

export interface HttpRequest {
  readonly method: string;
  /** Path and query, escaped. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const TIMEOUT_MS = 120_000;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });

export function sendRequest(base: string, question: HttpRequest): Promise<HttpResponse> {
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
    sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no response: ${method} ${path}`)));
    sent.once('error', (error) => {
      reject(new Error(`${method} ${path}: ${error.message}`, { cause: error }));
    });
    sent.end(body);
  });
}

export function jsonOf(answer: HttpResponse): unknown {
  return JSON.parse(answer.body.toString('utf8'));
}
