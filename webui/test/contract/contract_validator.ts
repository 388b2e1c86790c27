// Validates responses against the contract and records which documented responses were seen.
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { type HttpResponse } from './http_client';
import type { Contract, Operation, ResponseRule } from './document';

export class ContractValidator {
  private readonly seen = new Set<string>();

  constructor(private readonly contract: Contract) {}

  /** The violations of a response to a request of the operation; empty: none. */
  violations(operation: Operation, answer: HttpResponse, method = operation.method): string[] {
    const own = operation.responses.get(answer.status);
    const rule = own ?? this.contract.anyRequest.get(answer.status);
    if (!rule) return [`${answer.status} is not a documented response: ${excerpt(answer)}`];
    const type = mediaType(answer);
    this.seen.add(key(own ? operation.id : ANY, answer.status, type));
    return [
      ...requestIdViolations(answer),
      ...headerViolations(rule, answer),
      ...contentViolations(rule, answer, type, method),
    ];
  }

  /** Documented responses that no request has produced. */
  unseen(): string[] {
    return this.responses().filter((response) => !this.seen.has(response));
  }

  /** All responses of all operations: id, status and media type. */
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

const mediaType = (answer: HttpResponse) =>
  (answer.headers['content-type'] ?? '').replace(/;.*/, '');

const excerpt = (answer: HttpResponse) => answer.body.subarray(0, 300).toString('utf8');

// Every response must have an X-Request-Id.
function requestIdViolations({ headers }: HttpResponse): string[] {
  const id = headers['x-request-id'];
  if (id === undefined) return ['the header X-Request-Id is missing'];
  return typeof id === 'string' && /^[\w.-]{1,64}$/.test(id) ? [] : [`X-Request-Id: ${String(id)}`];
}

function headerViolations(rule: ResponseRule, answer: HttpResponse): string[] {
  return rule.headers.flatMap(({ name, required, validate }) => {
    const value = answer.headers[name.toLowerCase()];
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (text === undefined) return required ? [`the header ${name} is missing`] : [];
    return validate(text) ? [] : [`the header ${name}: ${schemaErrors(validate)}`];
  });
}

function contentViolations(
  rule: ResponseRule,
  answer: HttpResponse,
  type: string,
  method: string,
): string[] {
  if (method === 'HEAD' || rule.content.size === 0) {
    return answer.body.length === 0 ? [] : [`unexpected body: ${excerpt(answer)}`];
  }
  const validate = rule.content.get(type);
  if (!validate)
    return [`${answer.status} has the undocumented type "${type}": ${excerpt(answer)}`];
  if (!/^application\/(.*\+)?json$/.test(type)) return [];
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer.body));
  } catch (error) {
    return [`the body is not JSON: ${String(error)}`];
  }
  const found = validate(json) ? [] : [`the body: ${schemaErrors(validate)}`];
  if (type === 'application/problem+json') {
    const { status, detail } = json as { status?: unknown; detail?: unknown };
    if (status !== answer.status) found.push(`the status in the body is ${String(status)}`);
    if (typeof detail !== 'string' || detail.length < 8)
      found.push(`detail is missing or too short: ${excerpt(answer)}`);
  }
  return found;
}

const schemaErrors = (validate: ValidateFunction) =>
  (validate.errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message, params }) =>
      `${instancePath || '/'} ${message ?? ''} ${JSON.stringify(params)}`.trim(),
    )
    .join('; ');
