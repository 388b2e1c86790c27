// Whether an answer is one that the contract allows, and which of those it
// allows were seen.
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { type Answer } from './ask';
import type { Contract, Operation, ResponseRule } from './document';

export class Judge {
  private readonly seen = new Set<string>();

  constructor(private readonly contract: Contract) {}

  /** What is wrong with the answer to a request of the operation; empty: nothing. */
  complaints(operation: Operation, answer: Answer, method = operation.method): string[] {
    const own = operation.responses.get(answer.status);
    const rule = own ?? this.contract.anyRequest.get(answer.status);
    if (!rule) return [`${answer.status} is none of its responses: ${excerpt(answer)}`];
    const type = mediaType(answer);
    this.seen.add(key(own ? operation.id : ANY, answer.status, type));
    return [
      ...idComplaints(answer),
      ...headerComplaints(rule, answer),
      ...contentComplaints(rule, answer, type, method),
    ];
  }

  /** Responses of the contract that no request has brought about. */
  unseen(): string[] {
    return this.responses().filter((response) => !this.seen.has(response));
  }

  /** Every response of every operation: id, status and media type. */
  responses(): string[] {
    const { operations, anyRequest } = this.contract;
    const named = operations.map(({ id, responses }) => [id, responses] as const);
    return [...named, [ANY, anyRequest] as const].flatMap(([id, responses]) =>
      [...responses].flatMap(([status, { content }]) => {
        const types = content.size === 0 ? [''] : [...content.keys()];
        return types.map((type) => key(id, status, type));
      }),
    );
  }
}

const ANY = 'any request';
const key = (id: string, status: number, type: string) => `${id} ${status} ${type}`.trim();

const mediaType = (answer: Answer) => (answer.headers['content-type'] ?? '').replace(/;.*/, '');

const excerpt = (answer: Answer) => answer.body.subarray(0, 300).toString('utf8');

// Every answer has one, whoever gives it.
function idComplaints({ headers }: Answer): string[] {
  const id = headers['x-request-id'];
  if (id === undefined) return ['the header X-Request-Id is missing'];
  return typeof id === 'string' && /^[\w.-]{1,64}$/.test(id) ? [] : [`X-Request-Id: ${String(id)}`];
}

function headerComplaints(rule: ResponseRule, answer: Answer): string[] {
  return rule.headers.flatMap(({ name, required, validate }) => {
    const value = answer.headers[name.toLowerCase()];
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (text === undefined) return required ? [`the header ${name} is missing`] : [];
    return validate(text) ? [] : [`the header ${name}: ${faults(validate)}`];
  });
}

function contentComplaints(
  rule: ResponseRule,
  answer: Answer,
  type: string,
  method: string,
): string[] {
  if (method === 'HEAD' || rule.content.size === 0) {
    return answer.body.length === 0 ? [] : [`there is a body: ${excerpt(answer)}`];
  }
  const validate = rule.content.get(type);
  if (!validate) return [`${answer.status} comes as "${type}": ${excerpt(answer)}`];
  if (!/^application\/(.*\+)?json$/.test(type)) return [];
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer.body));
  } catch (error) {
    return [`the body is not JSON: ${String(error)}`];
  }
  const found = validate(json) ? [] : [`the body: ${faults(validate)}`];
  if (type === 'application/problem+json') {
    const { status, detail } = json as { status?: unknown; detail?: unknown };
    if (status !== answer.status) found.push(`its body says status ${String(status)}`);
    if (typeof detail !== 'string' || detail.length < 8)
      found.push(`no detail says what to do: ${excerpt(answer)}`);
  }
  return found;
}

const faults = (validate: ValidateFunction) =>
  (validate.errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message, params }) =>
      `${instancePath || '/'} ${message ?? ''} ${JSON.stringify(params)}`.trim(),
    )
    .join('; ');
