// Every operation with everything that the contract lets one ask of it, and with
// what it does not: each has the answer that the contract promises, in status,
// type, headers and body.
import { afterEach, describe, expect, it } from 'vitest';
import { ask, type Answer, type Question } from './ask';
import type { Contract, Operation } from './document';
import type { Judge } from './judge';
import {
  invalidBodies,
  invalidQueries,
  targetOf,
  TRICKY_SEGMENTS,
  unknownSegments,
  validBodies,
  validQueries,
  type Given,
  type JsonObject,
  type Values,
} from './probes';

/** What the walk has to know that no schema says. */
export interface Ground {
  /** The server's address; known once it runs. */
  readonly url: () => string;
  /** Values of the path's parameters that name something that the operation can be done to. */
  readonly path: (operation: Operation) => Promise<Values>;
  /** Values of the parameters that the operation needs. */
  readonly query: (operation: Operation) => Values;
  /** A body that is taken. */
  readonly body: (operation: Operation) => Body;
  /** Of parameters and of fields of the body. */
  readonly given: (operation: Operation) => Given;
  /** Statuses of success. */
  readonly success: (operation: Operation) => readonly number[];
  /** After an operation that succeeded. */
  readonly undo: (operation: Operation, answer: Answer) => Promise<void>;
}

export type Body = JsonObject | Buffer | undefined;

export type Sent = Omit<Question, 'method'> & { readonly method?: string };
export type Probe = (
  operation: Operation,
  sent: Sent,
  expected: readonly number[],
  url?: string,
) => Promise<Answer>;

const NOT_JSON = ['', '{', '{"title":1,}', '{}{}', '\ufeff{}', '[1', '"', '{"a":\u0000}'];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Asks, judges, and remembers what was wrong: a test tells all of its failures at once. */
export function prober(judge: Judge, url: () => string): Probe {
  const failures: string[] = [];
  afterEach(() => {
    const found = failures.splice(0);
    expect(found.slice(0, 20), `${found.length} complaints`).toEqual([]);
  });
  return async (operation, sent, expected, elsewhere) => {
    const method = sent.method ?? operation.method;
    const answer = await ask(elsewhere ?? url(), { ...sent, method });
    const wrong = judge.complaints(operation, answer, method);
    if (!expected.includes(answer.status)) {
      const said = answer.body.subarray(0, 200).toString('utf8');
      wrong.push(`${answer.status} instead of ${expected.join(' or ')}: ${said}`);
    }
    const body = typeof sent.body === 'string' ? sent.body.slice(0, 100) : '';
    const asked = `${method} ${sent.target.slice(0, 100)} ${body}`.trim();
    failures.push(...wrong.map((why) => `${asked}: ${why}`));
    return answer;
  };
}

export function bodyOf(
  operation: Operation,
  body: Body | string,
): Pick<Question, 'headers' | 'body'> {
  if (!operation.body || body === undefined) return {};
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { headers: { 'Content-Type': operation.body.type }, body: bytes };
}

export function walk(contract: Contract, probe: Probe, ground: Ground): void {
  const firsts = contract.operations.filter(
    ({ path }, at, all) => all.findIndex((one) => one.path === path) === at,
  );
  it.each(firsts)('$path has the methods of the contract and no other', async (first) => {
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
    const target = async (query: Values = {}, path: Values = {}) =>
      targetOf(
        operation,
        { ...(await ground.path(operation)), ...path },
        { ...ground.query(operation), ...query },
      );
    const usual = () => bodyOf(operation, ground.body(operation));

    it('answers as promised, at every value of every parameter', async () => {
      for (const query of [{}, ...validQueries(operation, ground.given(operation))]) {
        const answer = await probe(operation, { target: await target(query), ...usual() }, success);
        await ground.undo(operation, answer);
      }
    });

    it('refuses what no parameter has', async () => {
      for (const query of invalidQueries(operation)) {
        await probe(operation, { target: await target(query), ...usual() }, [400]);
      }
    });

    const segments = operation.parameters.filter((one) => one.in === 'path');
    if (segments.length > 0) {
      it.each(segments)('finds nothing at another $name', async (one) => {
        for (const value of unknownSegments(one)) {
          const elsewhere = await target({}, { [one.name]: value });
          await probe(operation, { target: elsewhere, ...usual() }, [404]);
        }
        for (const value of TRICKY_SEGMENTS) {
          const elsewhere = await target({}, { [one.name]: value });
          await probe(operation, { target: elsewhere, ...usual() }, [400, 404]);
        }
      });
    }

    if (methodsOf(operation).includes('HEAD')) {
      it('answers HEAD with the same head', async () => {
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
      it('takes bodies that the schema allows', async () => {
        for (const body of validBodies(schema, base, ground.given(operation))) {
          const question = { target: await target(), ...bodyOf(operation, body) };
          await ground.undo(operation, await probe(operation, question, success));
        }
      });

      it('refuses bodies that the schema does not allow', async () => {
        const bodies = invalidBodies(schema, base).map((body) => JSON.stringify(body));
        for (const text of [...bodies, ...NOT_JSON]) {
          await probe(operation, { target: await target(), ...bodyOf(operation, text) }, [400]);
        }
      });
    }
  });
}

const methodsOf = ({ method }: Operation) => (method === 'GET' ? ['GET', 'HEAD'] : [method]);
