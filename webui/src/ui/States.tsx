// What a panel says while it has nothing to show, and why.
import type { ComponentChildren } from 'preact';
import { sentence, type ApiError } from '../net/api';

export function Empty(props: { children: ComponentChildren }) {
  return (
    <div class="empty" role="note">
      {props.children}
    </div>
  );
}

export function Loading({ children = 'Loading…' }: { children?: ComponentChildren }) {
  return (
    <div class="empty" role="status">
      <progress aria-hidden="true" />
      <span>{children}</span>
    </div>
  );
}

export function Failed(props: { what: string; error?: ApiError; again?: () => void }) {
  const { error } = props;
  if (error?.kind === 'offline') {
    return (
      <div class="empty" role="status">
        <b>{props.what}</b>
        <span>The server does not answer. This loads by itself when it is back.</span>
      </div>
    );
  }
  return (
    <div class="empty empty-error" role="alert">
      <b>{props.what}</b>
      {error && <span>{sentence(error)}</span>}
      {props.again && (
        <button type="button" class="link" onClick={props.again}>
          Try again
        </button>
      )}
    </div>
  );
}
