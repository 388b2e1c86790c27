// Placeholders for a panel without content: empty, loading, failed.
import type { ComponentChildren } from 'preact';
import { errorText, isNotHeld, type ApiError } from '../net/api';

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

export function Failed(props: { what: string; error?: ApiError; retry?: () => void }) {
  const { error } = props;
  if (error?.kind === 'offline') {
    return (
      <div class="empty" role="status">
        <b>{props.what}</b>
        <span>The server does not respond. This loads automatically when it is back.</span>
      </div>
    );
  }
  if (error && isNotHeld(error)) return <Empty>{errorText(error)}</Empty>;
  return (
    <div class="empty empty-error" role="alert">
      <b>{props.what}</b>
      {error && <span>{errorText(error)}</span>}
      {props.retry && (
        <button type="button" class="link" onClick={props.retry}>
          Try again
        </button>
      )}
    </div>
  );
}
