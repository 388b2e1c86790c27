// Tests every operation with valid and invalid requests generated from the contract. Status, media
// type, headers and body of each response must match the contract.
import { afterEach, describe, expect, it } from 'vitest';
import { sendRequest, type HttpResponse, type HttpRequest } from './http_client';
import type { Contract, Operation } from './document';
import type { ContractValidator } from './contract_validator';
import {
  invalidBodies,
  invalidQueries,
  targetOf,
  TRICKY_SEGMENTS,
  unknownSegments,
  validBodies,
  validQueries,
  type ValuesByName,
  type JsonObject,
  type TextByName,
} from './probes';

/** Data for the requests that the schemas do not contain. */
export interface TestData {
  /** The URL of the server; known after its start. */
  readonly url: () => string;
  /** Path parameters with which the operation succeeds. */
  readonly path: (operation: Operation) => Promise<TextByName>;
  /** The required query parameters. */
  readonly query: (operation: Operation) => TextByName;
  /** A valid body. */
  readonly body: (operation: Operation) => Body;
  /** Values of query parameters and body fields. */
  readonly values: (operation: Operation) => ValuesByName;
  /** The statuses of success. */
  readonly success: (operation: Operation) => readonly number[];
  /** Called after each successful request. */
  readonly undo: (operation: Operation, answer: HttpResponse) => Promise<void>;
}

export type Body = JsonObject | Buffer | undefined;

export type Sent = Omit<HttpRequest, 'method'> & { readonly method?: string };
export type Probe = (
  operation: Operation,
  sent: Sent,
  expected: readonly number[],
  url?: string,
) => Promise<HttpResponse>;

const NOT_JSON = ['', '{', '{"title":1,}', '{}{}', '\ufeff{}', '[1', '"', '{"a":\u0000}'];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Sends requests and validates responses. A test reports all of its violations at its end. */
export function prober(judge: ContractValidator, url: (operation: Operation) => string): Probe {
  const failures: string[] = [];
  afterEach(() => {
    const found = failures.splice(0);
    expect(found.slice(0, 20), `${found.length} violations`).toEqual([]);
  });
  return async (operation, sent, expected, elsewhere) => {
    const method = sent.method ?? operation.method;
    const ask = (): Promise<HttpResponse> =>
      sendRequest(elsewhere ?? url(operation), { ...sent, method });
    let answer = await ask();
    // A busy server, of which every client asks again.
    for (let i = 0; answer.status === 503 && !expected.includes(503) && i < 30; ++i) {
      const seconds = Number(answer.headers['retry-after'] ?? NaN);
      if (!(seconds > 0)) break;
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      answer = await ask();
    }
    const wrong = judge.violations(operation, answer, method);
    if (!expected.includes(answer.status)) {
      const excerpt = answer.body.subarray(0, 200).toString('utf8');
      wrong.push(`${answer.status} instead of ${expected.join(' or ')}: ${excerpt}`);
    }
    const body = typeof sent.body === 'string' ? sent.body.slice(0, 100) : '';
    const summary = `${method} ${sent.target.slice(0, 100)} ${body}`.trim();
    failures.push(...wrong.map((why) => `${summary}: ${why}`));
    return answer;
  };
}

export function bodyOf(
  operation: Operation,
  body: Body | string,
): Pick<HttpRequest, 'headers' | 'body'> {
  if (!operation.body || body === undefined) return {};
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { headers: { 'Content-Type': operation.body.type }, body: bytes };
}

export function testOperations(contract: Contract, probe: Probe, ground: TestData): void {
  const firsts = contract.operations.filter(
    ({ path }, at, all) => all.findIndex((one) => one.path === path) === at,
  );
  it.each(firsts)('$path accepts exactly the documented methods', async (first) => {
    const operations = contract.operations.filter((one) => one.path === first.path);
    const target = targetOf(first, await ground.path(first));
    for (const method of METHODS.filter((one) => !operations.some((own) => own.method === one))) {
      const answer = await probe(first, { method, target }, [405]);
      const methods = operations.flatMap(methodsOf).sort();
      expect(answer.headers.allow, `Allow at ${method} ${target}`).toBe(methods.join(', '));
    }
  });

  describe.each(contract.operations)('$method $path', (operation) => {
    const success = ground.success(operation);
    const target = async (query: TextByName = {}, path: TextByName = {}) =>
      targetOf(
        operation,
        { ...(await ground.path(operation)), ...path },
        { ...ground.query(operation), ...query },
      );
    const validBody = () => bodyOf(operation, ground.body(operation));

    it('accepts every valid value of every query parameter', async () => {
      for (const query of [{}, ...validQueries(operation, ground.values(operation))]) {
        const answer = await probe(
          operation,
          { target: await target(query), ...validBody() },
          success,
        );
        await ground.undo(operation, answer);
      }
    });

    it('rejects invalid query parameters', async () => {
      for (const query of invalidQueries(operation)) {
        await probe(operation, { target: await target(query), ...validBody() }, [400]);
      }
    });

    const segments = operation.parameters.filter((one) => one.in === 'path');
    if (segments.length > 0) {
      it.each(segments)('responds 404 to an unknown $name', async (one) => {
        for (const value of unknownSegments(one)) {
          const elsewhere = await target({}, { [one.name]: value });
          await probe(operation, { target: elsewhere, ...validBody() }, [404]);
        }
        for (const value of TRICKY_SEGMENTS) {
          const elsewhere = await target({}, { [one.name]: value });
          await probe(operation, { target: elsewhere, ...validBody() }, [400, 404]);
        }
      });
    }

    if (methodsOf(operation).includes('HEAD')) {
      it('responds to HEAD with the same headers', async () => {
        const question = { target: await target() };
        const get = await probe(operation, question, success);
        const head = await probe(operation, { ...question, method: 'HEAD' }, [get.status]);
        for (const name of ['content-type', 'etag', 'cache-control']) {
          expect(head.headers[name], `${name} of HEAD ${question.target}`).toBe(get.headers[name]);
        }
      });
    }

    const schema = operation.body?.schema;
    const base = ground.body(operation);
    if (schema?.properties && base && !Buffer.isBuffer(base)) {
      it('accepts valid bodies', async () => {
        for (const body of validBodies(schema, base, ground.values(operation))) {
          const question = { target: await target(), ...bodyOf(operation, body) };
          await ground.undo(operation, await probe(operation, question, success));
        }
      });

      it('rejects invalid bodies', async () => {
        const bodies = invalidBodies(schema, base).map((body) => JSON.stringify(body));
        for (const text of [...bodies, ...NOT_JSON]) {
          await probe(operation, { target: await target(), ...bodyOf(operation, text) }, [400]);
        }
      });
    }
  });
}

const methodsOf = ({ method }: Operation) => (method === 'GET' ? ['GET', 'HEAD'] : [method]);
