// Placeholders for a panel without content: empty, loading, failed.
import type { ComponentChildren } from 'preact';
import { formatBytes } from '../format';
import { errorText, isNotHeld, type ApiError } from '../net/api';
import type { Resource } from '../state/resource';

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

// A load that reads much: how far it is, as far as the server says, and a way to end it.
export function Reading(props: {
  what: string; // "Reading all weights"
  resource: Pick<Resource<unknown>, 'state' | 'cancel'>;
}) {
  const { what, resource } = props;
  const { progress } = resource.state.value;
  return (
    <div class="empty" role="status">
      <progress
        max={1}
        {...(progress ? { value: progress.readBytes / Math.max(1, progress.allBytes) } : {})}
        aria-label={what}
      />
      <span>
        {progress
          ? `${what}: ${formatBytes(progress.readBytes)} of ${formatBytes(progress.allBytes)}`
          : `${what}…`}
      </span>
      <button
        type="button"
        class="link"
        onClick={() => {
          resource.cancel();
        }}
      >
        Cancel
      </button>
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
  if (error?.kind === 'aborted') {
    return (
      <div class="empty" role="note">
        <span>{errorText(error)}</span>
        {props.retry && (
          <button type="button" class="link" onClick={props.retry}>
            Start again
          </button>
        )}
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

// The error of a load, with a way to try again.
export function FailedLoad(props: {
  what: string;
  resource: Pick<Resource<unknown>, 'state' | 'reload'>;
}) {
  const { what, resource } = props;
  const { error } = resource.state.value;
  return (
    <Failed
      what={what}
      {...(error && { error })}
      retry={() => {
        resource.reload();
      }}
    />
  );
}
