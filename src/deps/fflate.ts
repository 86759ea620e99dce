/** Deflate and zip archives. */
export { unzipSync, Zip, type ZipInputFile, ZipPassThrough, zipSync } from "npm:fflate@0.8.3";
