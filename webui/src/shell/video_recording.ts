// Records playback as a video: WebM, encoded by the browser while it plays.
import { effect, signal, type ReadonlySignal } from '@preact/signals';
import { formatNs, positionOf } from '../format';
import { durationOf } from '../net/types';
import { themeOf } from '../plane/theme';
import type { OpenSession } from '../state/session/open_session';
import { stepOpsOf } from '../state/session/per_session';
import type { Store } from '../state/store';
import { speedName } from '../state/view/speeds';
import { opOf } from '../state/view/selection';
import { paintVideo, VIDEO, type VideoFrame } from './video_picture';

const FRAMES_PER_SECOND = 30;
const BITS_PER_SECOND = 5_000_000;
const TYPES = ['video/webm;codecs=vp9', 'video/webm;codecs=vp8', 'video/webm'];
const MAX_BEFORE = 600; // characters; more than the lines of a picture have

export class VideoRecording {
  readonly recording: ReadonlySignal<boolean>;
  private readonly isRecording = signal(false);
  private finish: (() => void) | null = null;

  constructor(
    private readonly store: Store,
    private readonly session: OpenSession,
  ) {
    this.recording = this.isRecording;
  }

  // Plays the range, else the session, once, and offers the video at the end.
  start(): void {
    const { store } = this;
    const canvas = document.createElement('canvas');
    const ctx = canvas.getContext('2d');
    const type =
      'MediaRecorder' in globalThis
        ? TYPES.find((one) => MediaRecorder.isTypeSupported(one))
        : undefined;
    if (!ctx || type === undefined) {
      store.toasts.error('This browser cannot record WebM. tt export s.ttrace -o s.webm can.');
      return;
    }
    if (!store.shell.filmed()) {
      store.toasts.error('A video shows the map: open the panel Map first.');
      return;
    }
    canvas.width = VIDEO.w;
    canvas.height = VIDEO.h;
    const paint = (): void => {
      const frame = this.frame();
      if (frame) paintVideo(ctx, frame, themeOf(document.documentElement));
    };
    const recorder = new MediaRecorder(canvas.captureStream(FRAMES_PER_SECOND), {
      mimeType: type,
      videoBitsPerSecond: BITS_PER_SECOND,
    });
    const parts: Blob[] = [];
    recorder.addEventListener('dataavailable', ({ data }) => {
      parts.push(data);
    });
    recorder.addEventListener('stop', () => {
      const name = `${this.session.id}.webm`;
      store.offer(name, new Blob(parts, { type: 'video/webm' }));
      store.toasts.done(`Saved ${name}.`);
    });
    store.playback.playOnce();
    if (!store.playback.playing.peek()) return;
    paint();
    recorder.start();
    this.isRecording.value = true;
    const timer = setInterval(paint, 1000 / FRAMES_PER_SECOND);
    const stopWatching = effect(() => {
      if (!store.playback.playing.value) this.stop();
    });
    this.finish = () => {
      clearInterval(timer);
      stopWatching();
      paint();
      // The encoder takes the last picture with the next frame of the page.
      requestAnimationFrame(() => {
        requestAnimationFrame(() => {
          recorder.stop();
        });
      });
    };
  }

  // Ends the recording and playback.
  stop(): void {
    const { finish } = this;
    if (!finish) return;
    this.finish = null;
    this.isRecording.value = false;
    finish();
    this.store.playback.pause();
  }

  private frame(): VideoFrame | null {
    const { store, session } = this;
    const filmed = store.shell.filmed();
    const view = store.navigation.view.peek();
    const step = session.step.peek();
    if (!filmed || step === null) return null;
    const { steps, tokens } = session.data;
    const of = steps[step];
    const ops = stepOpsOf(session).known(step);
    const op = ops?.find((one) => one.op === opOf(view.selection));
    const first = of?.token_id ?? 0;
    const text = (from: number, to: number): string =>
      tokens
        .slice(Math.max(0, from), to)
        .map((token) => token?.text ?? '')
        .join('');
    const info = session.info.peek();
    return {
      title: info.is === 'ready' ? info.value.title : session.id,
      clock: `step ${positionOf(step, steps.length)}  ${((op?.timestamp_ns ?? of?.begin_ns ?? 0) / 1e6).toFixed(3)} ms`,
      op: op ? `${op.tensor_name}  ${op.operation_type}  ${formatNs(durationOf(op))}` : '',
      speed: speedName(view.speed ?? 1),
      before: text(first - MAX_BEFORE, first).slice(-MAX_BEFORE),
      now: text(first, first + (of?.token_count ?? 0)).slice(-MAX_BEFORE),
      filmed,
    };
  }
}
