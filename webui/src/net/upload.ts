// Sends a file to the server and says how far it is. fetch cannot tell what has
// left the browser, so this is the one place with an XMLHttpRequest.
import { err } from '../result';
import { answered, OFFLINE, type Answer } from './call';
import type { Check } from './check';

export function upload<T>(
  path: string,
  file: Blob,
  check: Check<T>,
  progress: (share: number) => void,
  signal?: AbortSignal,
): Answer<T> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('POST', `api/v1/${path}`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => {
      if (total > 0) progress(loaded / total);
    };
    request.onload = () => {
      resolve(answered(request.status, request.responseText, check));
    };
    request.onerror = () => {
      resolve(err(OFFLINE));
    };
    request.onabort = () => {
      resolve(err({ kind: 'aborted', detail: 'The upload was stopped.' }));
    };
    signal?.addEventListener('abort', () => {
      request.abort();
    });
    request.send(file);
  });
}
