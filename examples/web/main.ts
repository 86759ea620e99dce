/// <reference lib="dom" />
/**
 * A page that runs all algorithms of a layer on the browser's GPU, filters a picture, and checks every result on the CPU, with
 * `web.ts`, bundled.
 */
import { startLayers } from "./layers.ts";
import { startPicture } from "./picture.ts";

startLayers();
startPicture();
