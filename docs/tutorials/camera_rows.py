"""A camera by rows: the network runs while the image arrives, and RAM never holds a whole image.

    python camera_rows.py [MODEL.tflite]

You need cmake and a C compiler. The "camera" of the C program below is an array, which it reads two
lines at a time, as a DMA would deliver them. The rest of the program works on your board, too. The
model is the bundled one, which reads digits of 8 x 8 pixels.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import thimble

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"
model = sys.argv[1] if len(sys.argv) > 1 else str(FOLDER / "digits_int8.tflite")
LINES = 2


def command(*words: str) -> str:
    """A command, shown as you would type it; what it prints."""
    print("$", *words, flush=True)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def tool(*words: str) -> None:
    """A command of Thimble's."""
    print("$ thimble", *words, flush=True)
    subprocess.run([sys.executable, "-m", "toolchain.cli", *words], check=True)


# Show the RAM. This input of 64 bytes stays whole; rows pay for images of 96 x 96 and more
# (docs/stream.md has figures).
tool("plan", model, "--board", "nucleo-f446re", "--stream-input", "--quiet")

# Export a package for CMake and this computer. For your board, use --chip STM32F446RE.
tool("export", model, "--for", "cmake", "--board", "host", "--stream-input", "--name", "vision")
package = Path("build/export")
header = (package / "include" / "vision.h").read_text()
rows, row_elements = (
    int(re.search(rf"#define (VISION_INPUT_\w+_{what}) (\d+)", header)[2])
    for what in ("ROWS", "ROW_ELEMENTS")
)
output = re.search(r"vision_output_(\w+)\(", header)[1]

# Make the camera's frame from the first held-out digit, quantised to the int8 of the input, and
# write the C program.
images = np.load(FOLDER / "samples.npz")["images"]
frame = np.round(images[0].reshape(rows, row_elements) / 16 * 255 - 128).astype(np.int8)
np.save("frame.npy", frame.reshape(1, 8, 8, 1))
pixels = ",\n    ".join(", ".join(str(v) for v in line) for line in frame)
Path("camera.c").write_text(f"""
#include "vision.h"

#include <stdio.h>
#include <string.h>

static const int8_t sensor[{rows}][{row_elements}] = {{
    {pixels}
}};
static uint8_t arena[VISION_ARENA_BYTES] __attribute__((aligned(VISION_ARENA_ALIGNMENT)));

int main(void)
{{
    int8_t lines[{LINES}][{row_elements}]; /* all of the image that is ever in RAM */
    int32_t at = 0;
    int32_t status = vision_push_begin(arena);

    while (status == VISION_AGAIN) {{
        memcpy(lines, sensor[at], sizeof(lines)); /* the DMA has filled the line buffer */
        status = vision_push_rows(arena, &lines[0][0], {LINES});
        at += {LINES};
    }}
    for (int32_t i = 0; status == VISION_OK && i < 10; i++) {{
        printf("%d ", vision_output_{output}(arena)[i]);
    }}
    return status == VISION_OK ? 0 : 1;
}}
""")
Path("CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(camera LANGUAGES C)
add_subdirectory(build/export vision)
add_executable(camera camera.c)
target_link_libraries(camera PRIVATE vision)
""")
command("cmake", "-S", ".", "-B", "build/camera")
command("cmake", "--build", "build/camera")
pushed = [int(word) for word in command("build/camera/camera").split()]

# Run the whole image at once, in the ordinary program for this computer, and compare.
tool("compile", model, "--board", "host", "-o", "build/whole", "--force", "--quiet")
with thimble.deployed("build/whole") as deployment:
    (end,) = deployment.inputs
    (whole,) = deployment.run({end.name: np.load("frame.npy")}).outputs.values()
if pushed != whole.reshape(-1).tolist():
    sys.exit("Rows give other outputs than the whole image.")
print(f"{rows} rows, {LINES} at a time: the same outputs as the whole image")
print(f"It is a {np.argmax(whole)}.")
