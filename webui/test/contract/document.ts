// Parses api/openapi.yaml into a list of operations with validators for their responses.
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { closed, inlined, type Schema } from './schema';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Media {
  readonly schema: Schema;
}

interface RawHeader extends Media {
  readonly required?: boolean;
}

interface RawResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, RawHeader>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface RawOperation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, RawResponse>>;
}

type PathItem = { readonly parameters?: readonly Parameter[] } & Readonly<
  Record<string, RawOperation>
>;

interface Document {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly 'x-any-request': Readonly<Record<string, RawResponse>>;
}

/** The rules of a response with one status. */
export interface ResponseRule {
  /** Validators by media type; empty: no body. */
  readonly content: ReadonlyMap<string, ValidateFunction>;
  readonly headers: readonly HeaderRule[];
}

export interface HeaderRule {
  readonly name: string;
  readonly required: boolean;
  readonly validate: ValidateFunction;
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  /** The path, with parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly type: string; readonly schema: Schema } | undefined;
  /** Does not require a key. */
  readonly open: boolean;
  readonly responses: ReadonlyMap<number, ResponseRule>;
}

export interface Contract {
  readonly operations: readonly Operation[];
  /** Responses that are possible for any request. */
  readonly anyRequest: ReadonlyMap<number, ResponseRule>;
  /** The parsed file. */
  readonly raw: unknown;
}

export function readContract(): Contract {
  const file = new URL('../../../api/openapi.yaml', import.meta.url);
  const raw: unknown = parse(readFileSync(file, 'utf8'), { uniqueKeys: true });
  const document = inlined(raw) as Document;
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allErrors: true,
  });

  const compile = (media: Readonly<Record<string, Media>> | undefined) =>
    new Map(
      Object.entries(media ?? {}).map(([key, { schema }]) => [key, ajv.compile(closed(schema))]),
    );
  const rules = (responses: Readonly<Record<string, RawResponse>>) =>
    new Map(
      Object.entries(responses).map(([status, { content, headers }]) => [
        Number(status),
        {
          content: compile(content),
          headers: Object.entries(headers ?? {}).map(([name, { schema, required = false }]) => ({
            name,
            required,
            validate: ajv.compile(schema),
          })),
        },
      ]),
    );

  const operations = Object.entries(document.paths).flatMap(([path, { parameters, ...methods }]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const [body] = Object.entries(operation.requestBody?.content ?? {});
      return {
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        parameters: [...(parameters ?? []), ...(operation.parameters ?? [])],
        body: body && { type: body[0], schema: body[1].schema },
        open: operation.security?.length === 0,
        responses: rules(operation.responses),
      };
    }),
  );
  return { operations, anyRequest: rules(document['x-any-request']), raw };
}
