// Uploads a file and reports progress. Uses XMLHttpRequest because fetch reports no upload
// progress.
import { err } from '../result';
import { parseResponse, OFFLINE, type ApiResult } from './call';
import type { Check } from './check';

export function upload<T>(
  path: string,
  file: Blob,
  check: Check<T>,
  progress: (share: number) => void,
  signal?: AbortSignal,
): ApiResult<T> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('POST', `api/v1/${path}`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => {
      if (total > 0) progress(loaded / total);
    };
    request.onload = () => {
      resolve(parseResponse(request.status, request.responseText, check));
    };
    request.onerror = () => {
      resolve(err(OFFLINE));
    };
    request.onabort = () => {
      resolve(err({ kind: 'aborted', detail: 'Upload cancelled.' }));
    };
    signal?.addEventListener('abort', () => {
      request.abort();
    });
    request.send(file);
  });
}
